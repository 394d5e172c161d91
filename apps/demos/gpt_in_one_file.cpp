// A GPT in one file: a text goes in, a model is trained on it, a new text comes out. The model is GPT-2's
// decoder (Radford et al., 2019, "Language Models are Unsupervised Multitask Learners") on plain LibTorch.
// Read it from top to bottom. The zoo's gpt2 computes the same numbers, with faster kernels. Try it:
//   build/apps/gpt_in_one_file input.txt
//
// Shapes: B texts of T tokens, C numbers for a token, H heads of D = C / H numbers, a vocabulary of V tokens.

#include <cmath>
#include <fstream>
#include <iostream>
#include <set>

#include <torch/torch.h>

namespace one_file {
namespace nn = torch::nn;
using torch::Tensor;

// The names are those of tzoo train's flags.
struct GptConfig {
  std::int64_t vocab_size = 0;                         // V
  std::int64_t block_size = 64;                        // the longest text that the model sees, in tokens
  std::int64_t n_layer = 4, n_head = 4, n_embd = 128;  // n_head: H; n_embd: C
  double dropout = 0.0;
};

struct TrainingConfig {
  std::int64_t batch_size = 12;  // B
  std::int64_t max_iters = 2000, warmup_iters = 100, eval_interval = 250;
  double learning_rate = 1e-3, min_lr = 1e-4;
  double beta1 = 0.9, beta2 = 0.99, weight_decay = 0.1, grad_clip = 1.0;
};

// ---- 1. The text ----

// Each character is a token: id i is the character letters[i].
struct Characters {
  explicit Characters(const std::string& text) {
    const std::set<char> seen(text.begin(), text.end());
    letters.assign(seen.begin(), seen.end());
  }

  Tensor encode(const std::string& text) const {  // [T]
    std::vector<std::int64_t> ids;
    for (const char c : text) ids.push_back(letters.find(c));
    return torch::tensor(ids);
  }

  std::string decode(const Tensor& ids) const {
    std::string text;
    for (std::int64_t i = 0; i < ids.size(0); ++i) text += letters[ids[i].item<std::int64_t>()];
    return text;
  }

  std::string letters;
};

// Random pieces of the text, and for each of their tokens the next one, which the model learns to predict.
struct Batch {
  Tensor inputs, targets;  // [B, T]
};
Batch random_batch(const Tensor& ids, std::int64_t block_size, std::int64_t batch_size) {
  const Tensor starts = torch::randint(ids.size(0) - block_size, {batch_size, 1}, torch::kLong);
  const Tensor positions = starts + torch::arange(block_size);  // [B, T]
  return {ids.index({positions}), ids.index({positions + 1})};
}

// ---- 2. The model ----

// Each token looks at itself and the tokens before it: softmax(Q K^T / sqrt(D)) V, in H heads side by side
// (Vaswani et al., 2017, section 3.2).
struct MultiHeadAttentionImpl : nn::Module {
  explicit MultiHeadAttentionImpl(const GptConfig& config) : n_head(config.n_head) {
    w_qkv = register_module("w_qkv", nn::Linear(config.n_embd, 3 * config.n_embd));
    w_o = register_module("w_o", nn::Linear(config.n_embd, config.n_embd));
    dropout = register_module("dropout", nn::Dropout(config.dropout));
  }

  Tensor forward(const Tensor& x) {  // [B, T, C] to [B, T, C]
    const std::int64_t B = x.size(0), T = x.size(1), D = x.size(2) / n_head;
    const Tensor qkv = w_qkv(x).view({B, T, 3, n_head, D}).permute({2, 0, 3, 1, 4});
    const Tensor q = qkv[0], k = qkv[1], v = qkv[2];  // [B, H, T, D]
    const Tensor scores = q.matmul(k.transpose(-2, -1)) / std::sqrt(static_cast<double>(D));
    const Tensor future = torch::ones({T, T}, torch::kBool).triu(1);
    const Tensor weights = scores.masked_fill(future, -INFINITY).softmax(-1);  // [B, H, T, T]
    const Tensor heads = dropout(weights).matmul(v);                           // [B, H, T, D]
    return dropout(w_o(heads.transpose(1, 2).reshape(x.sizes())));
  }

  std::int64_t n_head;
  nn::Linear w_qkv{nullptr}, w_o{nullptr};
  nn::Dropout dropout{nullptr};
};
TORCH_MODULE(MultiHeadAttention);

// Attention mixes the tokens, two projections with a GELU in between change each one; both add to x.
struct TransformerBlockImpl : nn::Module {
  explicit TransformerBlockImpl(const GptConfig& config) {
    const std::int64_t C = config.n_embd;
    ln_1 = register_module("ln_1", nn::LayerNorm(nn::LayerNormOptions({C})));
    attention = register_module("attention", MultiHeadAttention(config));
    ln_2 = register_module("ln_2", nn::LayerNorm(nn::LayerNormOptions({C})));
    feed_forward = register_module("feed_forward", nn::Sequential());
    feed_forward->push_back("w_1", nn::Linear(C, 4 * C));
    feed_forward->push_back("gelu", nn::GELU(nn::GELUOptions().approximate("tanh")));
    feed_forward->push_back("w_2", nn::Linear(4 * C, C));
    feed_forward->push_back("dropout", nn::Dropout(config.dropout));
  }

  Tensor forward(Tensor x) {
    x = x + attention(ln_1(x));
    return x + feed_forward->forward(ln_2(x));
  }

  nn::LayerNorm ln_1{nullptr}, ln_2{nullptr};
  MultiHeadAttention attention{nullptr};
  nn::Sequential feed_forward{nullptr};
};
TORCH_MODULE(TransformerBlock);

struct GptImpl : nn::Module {
  explicit GptImpl(const GptConfig& config) : config(config) {
    const std::int64_t C = config.n_embd;
    token_embedding = register_module("token_embedding", nn::Embedding(config.vocab_size, C));
    position_embedding = register_module("position_embedding", nn::Embedding(config.block_size, C));
    dropout = register_module("dropout", nn::Dropout(config.dropout));
    blocks = register_module("blocks", nn::Sequential());
    for (std::int64_t i = 0; i < config.n_layer; ++i) blocks->push_back(TransformerBlock(config));
    ln_final = register_module("ln_final", nn::LayerNorm(nn::LayerNormOptions({C})));
    initialize();
  }

  // Ids [B, T] to logits [B, T, V]: at each position a score for each token that may come next.
  Tensor forward(const Tensor& ids) {
    const Tensor x = token_embedding(ids) + position_embedding(torch::arange(ids.size(1)));  // [B, T, C]
    const Tensor hidden = ln_final(blocks->forward(dropout(x)));
    return torch::linear(hidden, token_embedding->weight);  // the output projection is the embedding, too
  }

  // GPT-2's first weights: small random matrices, smaller still where they add to the residual stream.
  void initialize() {
    const torch::NoGradGuard no_grad;
    for (auto& [name, weight] : named_parameters().pairs()) {
      const bool adds = name.ends_with("w_o.weight") || name.ends_with("w_2.weight");
      if (weight.dim() == 2) weight.normal_(0.0, adds ? 0.02 / std::sqrt(2.0 * config.n_layer) : 0.02);
      if (name.ends_with("bias")) weight.zero_();
    }
  }

  GptConfig config;
  nn::Embedding token_embedding{nullptr}, position_embedding{nullptr};
  nn::Dropout dropout{nullptr};
  nn::Sequential blocks{nullptr};
  nn::LayerNorm ln_final{nullptr};
};
TORCH_MODULE(Gpt);

// ---- 3. Training ----

// AdamW (Loshchilov and Hutter, 2019). Weight decay pulls matrices towards 0, but no biases and norms.
torch::optim::AdamW make_optimizer(Gpt& model, const TrainingConfig& training) {
  const auto group = [&](bool matrices, double weight_decay) {
    std::vector<Tensor> weights;
    for (const Tensor& weight : model->parameters())
      if ((weight.dim() == 2) == matrices) weights.push_back(weight);
    auto options = std::make_unique<torch::optim::AdamWOptions>(training.learning_rate);
    options->betas({training.beta1, training.beta2}).weight_decay(weight_decay);
    return torch::optim::OptimizerParamGroup(weights, std::move(options));
  };
  return torch::optim::AdamW({group(true, training.weight_decay), group(false, 0.0)});
}

// Rises in a straight line during the warmup, then falls to min_lr along half a cosine.
double learning_rate_at(double iteration, const TrainingConfig& training) {
  const double warmup = training.warmup_iters, end = training.max_iters;
  if (iteration < warmup) return training.learning_rate * (iteration + 1) / (warmup + 1);
  const double left = 0.5 * (1 + std::cos(M_PI * (iteration - warmup) / (end - warmup)));
  return training.min_lr + left * (training.learning_rate - training.min_lr);
}

// The mean of -log p(target) over all positions, in nats.
Tensor loss_of(Gpt& model, const Batch& batch) {
  return nn::functional::cross_entropy(model(batch.inputs).flatten(0, 1), batch.targets.flatten());
}

// Updates all weights once; returns the loss before that.
double train_step(Gpt& model, torch::optim::AdamW& optimizer, const Batch& batch, double grad_clip) {
  optimizer.zero_grad();
  const Tensor loss = loss_of(model, batch);
  loss.backward();
  nn::utils::clip_grad_norm_(model->parameters(), grad_clip);
  optimizer.step();
  return loss.item<double>();
}

double validation_loss(Gpt& model, const Batch& batch) {
  const torch::NoGradGuard no_grad;
  model->eval();  // without dropout
  const double loss = loss_of(model, batch).item<double>();
  model->train();
  return loss;
}

// ---- 4. A new text ----

// Adds `count` tokens to ids [1, T], each one of the top_k most probable. A low temperature favours the best.
Tensor generate(Gpt& model, Tensor ids, std::int64_t count, double temperature, std::int64_t top_k) {
  const torch::NoGradGuard no_grad;
  model->eval();
  for (std::int64_t i = 0; i < count; ++i) {
    const Tensor logits = model(ids.slice(1, -model->config.block_size)).select(1, -1);  // [1, V]
    const auto [best, best_ids] = logits.topk(std::min(top_k, logits.size(1)));
    const Tensor drawn = (best / temperature).softmax(-1).multinomial(1);
    ids = torch::cat({ids, best_ids.gather(1, drawn)}, 1);
  }
  return ids;
}

void run(const std::string& text, const TrainingConfig& training) {
  const Characters characters(text);
  const Tensor ids = characters.encode(text);
  const std::int64_t split = ids.size(0) * 9 / 10;  // the last tenth is for validation
  Gpt model(GptConfig{.vocab_size = std::ssize(characters.letters)});
  const std::int64_t block_size = model->config.block_size;
  torch::optim::AdamW optimizer = make_optimizer(model, training);
  for (std::int64_t i = 0; i < training.max_iters; ++i) {
    for (auto& group : optimizer.param_groups()) group.options().set_lr(learning_rate_at(i, training));
    const Batch batch = random_batch(ids.slice(0, 0, split), block_size, training.batch_size);
    const double loss = train_step(model, optimizer, batch, training.grad_clip);
    if (i % training.eval_interval != 0 && i + 1 != training.max_iters) continue;
    const Batch unseen = random_batch(ids.slice(0, split), block_size, /*batch_size=*/64);
    std::cout << i << ": loss " << loss << ", on unseen text " << validation_loss(model, unseen) << "\n";
  }
  const Tensor begin = ids.slice(0, 0, 1).unsqueeze(0);  // [1, 1]
  std::cout << characters.decode(generate(model, begin, 500, 0.8, 40)[0]) << "\n";
}

}  // namespace one_file

int main(int argc, char** argv) {
  std::ifstream file(argc == 2 ? argv[1] : "", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.size() < 1000) {
    std::cerr << "error: expected one argument, a file with a text of at least 1000 characters\n";
    return 1;
  }
  torch::manual_seed(1337);
  one_file::run(text, {});
  return 0;
}
