// Three models of the tutorials, each as small as the idea that it shows, trained by `tzoo demo embeddings`,
// `ambiguous` and `disagreement`. Their fresh weights are those of torch.nn from the same seed, in the
// tutorials' order, so that the printed figures are reproduced. Tensors have the names of the tutorials'
// modules.

#include <cmath>

#include "models/families/kinds/shared.h"
#include "models/heads/losses.h"
#include "models/layers/attention/attention.h"
#include "models/model.h"

namespace zoo::family::tutorial {

// Fresh weights by torch.nn's rules: tables are normal(0, 1); weights, then biases, uniform on +-1/sqrt(in).
class TutorialModel : public Model {
 public:
  explicit TutorialModel(const TransformerConfig& config) : Model(config) {
    config.validate();
    embed = register_module("embed", Embedding(config.vocab_size, config.hidden_size));
  }

  void initialize(at::Generator generator) override {
    const at::NoGradGuard no_grad;
    for (const auto& part : modules(/*include_self=*/false)) {
      if (auto* table = part->as<EmbeddingImpl>()) table->weight.normal_(0, 1, generator);
      auto* linear = part->as<LinearImpl>();
      if (linear == nullptr) continue;
      const double bound = 1.0 / std::sqrt(static_cast<double>(linear->weight.size(1)));
      linear->weight.uniform_(-bound, bound, generator);
      if (linear->bias.defined()) linear->bias.uniform_(-bound, bound, generator);
    }
  }

  Embedding embed{nullptr};  // [V, C]
};

void check_ids(const ModelInputs& inputs) {
  const at::Tensor& ids = inputs.input_ids;
  TORCH_CHECK(ids.defined() && ids.dim() == 2 && ids.size(1) > 0, "input_ids must be [batch, length], got ",
              ids.defined() ? ids.sizes() : at::IntArrayRef());
  TORCH_CHECK(inputs.interventions.empty() && !inputs.output_activations,
              "this tutorial's model has no layers whose activations can be recorded or replaced");
}

// Every position sees every other, except padding.
AttentionMask mask_of(const ModelInputs& inputs, const at::Tensor& x) {
  return make_attention_mask(inputs.attention_mask, {.queries = x.size(1), .keys = x.size(1)},
                             x.scalar_type(), x.device());
}

// Embeddings that learn by prediction: logits = W e[id] + b, a position sees itself alone.
// input_ids [B, T], targets or labels [B, T]; logits [B, T, V].
class WordPrediction : public TutorialModel {
 public:
  explicit WordPrediction(const TransformerConfig& config) : TutorialModel(config) {
    linear = register_module("linear", Linear(config.hidden_size, config.vocab_size));
  }

  ModelOutput forward(const ModelInputs& inputs) override {
    check_ids(inputs);
    ModelOutput output;
    output.last_hidden_state = embed(inputs.input_ids);
    if (inputs.output_hidden_states) output.hidden_states = {output.last_hidden_state};
    run({.labels = HeadParts::Labels::kNextTokens, .weight = linear->adapted_weight(), .bias = linear->bias},
        inputs, output);
    if (inputs.cache != nullptr) inputs.cache->advance(inputs.input_ids.size(1));
    return output;
  }

  Linear linear{nullptr};  // [V, C], with bias
};

// One head of attention without positions, and a class from the FIRST word: what tells the phrases apart
// must come to it through the attention. input_ids [B, T], labels [B]; logits [B, num_labels].
class FirstWordClassifier : public TutorialModel {
 public:
  explicit FirstWordClassifier(const TransformerConfig& config) : TutorialModel(config) {
    TORCH_CHECK(config.num_heads == 1, "the classifier of first words has one head, got ", config.num_heads);
    const std::int64_t width = config.hidden_size;
    qkv = register_module("qkv", Linear(width, 3 * width, /*with_bias=*/false));
    fc = register_module("fc", Linear(width, config.num_labels));
  }

  ModelOutput forward(const ModelInputs& inputs) override {
    check_ids(inputs);
    const at::Tensor x = embed(inputs.input_ids);
    const auto parts = qkv(x).unsqueeze(1).chunk(3, -1);  // [B, 1, T, C] each
    const AttentionOutput attended = ops::scaled_dot_product_attention(
        parts[0], parts[1], parts[2], mask_of(inputs, x), {.need_weights = inputs.output_attentions});
    ModelOutput output;
    output.last_hidden_state = attended.output.squeeze(1);
    if (inputs.output_hidden_states) output.hidden_states = {x, output.last_hidden_state};
    if (inputs.output_attentions) output.attentions = {attended.weights};
    output.logits = fc(output.last_hidden_state.select(1, 0));
    if (inputs.labels.defined())
      output.loss = sequence_loss(output.logits, inputs.labels, config_, inputs.loss);
    return output;
  }

  Linear qkv{nullptr};  // [3C, C]: query, key, value, whose draws are those of three projections
  Linear fc{nullptr};   // with bias
};

// Attention of num_heads heads without positions, and a class from the LAST word.
// input_ids [B, T], labels [B]; logits [B, num_labels], attentions one of [B, H, T, T].
class LastWordClassifier : public TutorialModel {
 public:
  explicit LastWordClassifier(const TransformerConfig& config) : TutorialModel(config) {
    attention = register_module("attention", SelfAttention(config));
    fc = register_module("fc", Linear(config.hidden_size, config.num_labels));
  }

  ModelOutput forward(const ModelInputs& inputs) override {
    check_ids(inputs);
    const at::Tensor x = embed(inputs.input_ids);
    ModelOutput output;
    SelfAttentionContext context{.mask = mask_of(inputs, x)};
    if (inputs.output_attentions) context.weights = &output.attentions.emplace_back();
    if (inputs.output_heads) context.heads = &output.heads.emplace_back();
    output.last_hidden_state = attention(x, context);
    if (inputs.output_hidden_states) output.hidden_states = {x, output.last_hidden_state};
    output.logits = fc(output.last_hidden_state.select(1, -1));
    if (inputs.labels.defined())
      output.loss = sequence_loss(output.logits, inputs.labels, config_, inputs.loss);
    return output;
  }

  SelfAttention attention{nullptr};
  Linear fc{nullptr};  // with bias
};

C base(Shape shape) {
  C config;
  config.shape = shape;
  config.num_layers = config.num_heads = 1;
  config.max_positions = 1024;
  config.position = PositionKind::kNone;
  config.qkv_bias = config.attention_output_bias = shape == Shape::kDecoder;
  config.tie_word_embeddings = false;
  return config;
}

// GPT-2's names.
std::vector<ConfigKey> size_keys() {
  return {
      required_key("vocab_size", &C::vocab_size),
      required_key("n_embd", &C::hidden_size),
      optional_key("n_positions", &C::max_positions),
  };
}

std::vector<ConfigKey> classifier_keys() {
  return concatenated(size_keys(), {optional_key("n_head", &C::num_heads), pad_token_key(), label_keys()});
}

C classifier(const Sizes& sizes, std::int64_t labels) {
  C config = of_size(base(Shape::kEncoder), sizes);
  config.num_labels = labels;
  return config;
}

template <class Kind> std::shared_ptr<Model> build(const C& config, Head) {
  return std::make_shared<Kind>(config);
}

// The names of the tutorial's own modules.
WeightTable word_prediction_names(const C&) {
  return {.names = {{"embed.weight", {"embed.weight"}},
                    {"linear.weight", {"linear.weight"}},
                    {"linear.bias", {"linear.bias"}}}};
}

WeightTable classifier_names(const std::string& attention) {
  return {.names = {{"embed.weight", {"embed.weight"}},
                    {attention + "qkv.weight", q_k_v("W_", ".weight")},
                    {attention + "out.weight", {"W_o.weight"}},
                    {"fc.weight", {"fc.weight"}},
                    {"fc.bias", {"fc.bias"}}}};
}

}  // namespace zoo::family::tutorial

namespace zoo::family::tutorial_embeddings {

using namespace tutorial;

Family family() {
  return {
      .model_type = "tutorial-embeddings",
      .description = "a tutorial's word prediction: an embedding and a projection, no attention",
      .heads = {{Head::kCausalLm, "WordPredictionModel"}},
      .base = base(Shape::kDecoder),
      .keys = {"WordPredictionModel", size_keys()},
      .presets = {{"tutorial-embeddings", "animals and fruits in two dimensions",
                   of_size(base(Shape::kDecoder), {13, 2, 1, 1})}},
      .build = build<WordPrediction>,
      .weight_table = word_prediction_names,
  };
}

}  // namespace zoo::family::tutorial_embeddings

namespace zoo::family::tutorial_ambiguous {

using namespace tutorial;

Family family() {
  return {
      .model_type = "tutorial-ambiguous",
      .description = "a tutorial's single head: a phrase classified by what its first word attends to",
      .heads = {{Head::kSequenceClassification, "TinyTransformer"}},
      .base = base(Shape::kEncoder),
      .keys = {"TinyTransformer", classifier_keys()},
      .presets = {{"tutorial-ambiguous", "'fruit fly' or 'fruit salad'", classifier({6, 8, 1, 1}, 4)}},
      .build = build<FirstWordClassifier>,
      .weight_table = [](const C&) { return classifier_names(""); },
  };
}

}  // namespace zoo::family::tutorial_ambiguous

namespace zoo::family::tutorial_disagreement {

using namespace tutorial;

Family family() {
  return {
      .model_type = "tutorial-disagreement",
      .description = "a tutorial's multi-head attention: a class from the last word, heads kept apart",
      .heads = {{Head::kSequenceClassification, "RegularizedMultiHead"}},
      .base = base(Shape::kEncoder),
      .keys = {"RegularizedMultiHead", classifier_keys()},
      .presets = {{"tutorial-disagreement", "colour and kind, a head each", classifier({9, 64, 1, 2}, 9)}},
      .build = build<LastWordClassifier>,
      .weight_table = [](const C&) { return classifier_names("attention."); },
  };
}

}  // namespace zoo::family::tutorial_disagreement
