#include "models/graph/passes.h"

#include <algorithm>

#include <ATen/ops/empty.h>

#include "data/base/error.h"
#include "models/checkpoint/stored_weights.h"
#include "models/graph/trace.h"
#include "models/graph/verify.h"
#include "models/layers/embeddings.h"
#include "models/layers/stack.h"

namespace zoo::graph {
namespace {

using Tensors = std::vector<at::Tensor>;
using Views = std::vector<KeyValueCache::View>;

// Three lengths in (1, largest], the first primes from `first` on if they fit: no other size of the model
// follows them. A single query needs no causal mask, so 1 would be another pass.
std::vector<std::int64_t> lengths(std::int64_t largest, std::int64_t first = 5) {
  std::vector<std::int64_t> found;
  const auto is_prime = [](std::int64_t n) {
    for (std::int64_t d = 2; d * d <= n; ++d)
      if (n % d == 0) return false;
    return true;
  };
  for (std::int64_t n = first; n <= largest && found.size() < 3; ++n)
    if (is_prime(n)) found.push_back(n);
  if (found.size() == 3) return found;
  if (largest < 4) throw Error("a context of ", largest, " positions is too short to export: expected 4");
  return {largest - 2, largest - 1, largest};
}

// In another order, so that no two lengths of a pass are equal.
std::vector<std::int64_t> reversed(std::vector<std::int64_t> lengths) {
  std::reverse(lengths.begin(), lengths.end());
  return lengths;
}

constexpr std::int64_t kAnyLength = 1 << 20;
constexpr std::int64_t kPast = 13;  // first prime of caches, which a step's new positions do not reach

class Pass {
 public:
  explicit Pass(Model& model) : model_(model), config_(model.config()) { require_weights(model); }

  /// A free size: that of dimension `dim` of the next input.
  Size symbol(const std::string& name, std::int64_t dim, std::vector<std::int64_t> points,
              std::int64_t largest = 0, std::int64_t smallest = 1) {
    request_.symbols.push_back({name, request_.inputs.size(), dim, largest, smallest});
    request_.points.push_back(std::move(points));
    return Size::symbol(request_.symbols.size() - 1);
  }
  Size batch() { return symbol("batch", 0, {2, 3, 5}); }

  void ids(const std::string& name, std::vector<Size> sizes, std::int64_t bound) {
    request_.inputs.push_back({name, std::move(sizes), bound});
  }

  void reals(const std::string& name, std::vector<Size> sizes) {
    request_.inputs.push_back({name, std::move(sizes), 17, model_.parameters().front().scalar_type()});
  }

  void caches(std::int64_t layers, const std::string& owner, const Size& batch, const Size& positions) {
    for (std::int64_t i = 0; i < layers; ++i) {
      for (const char* part : {"key", "value"})
        reals("past_key_values." + std::to_string(i) + "." + owner + part,
              {batch, config_.kv_heads(), positions, config_.head_size()});
    }
  }

  Graph trace(std::function<Tensors(const Tensors&)> forward) {
    request_.forward = std::move(forward);
    const EvaluationMode evaluation(model_);
    try {
      return graph::trace(model_, request_);
    } catch (const Error& error) {
      throw Error("this model cannot be exported as a program: ", error.what());
    }
  }

 private:
  Model& model_;
  const TransformerConfig& config_;
  TraceRequest request_;
};

// `count` views from the keys and values that begin at `first`.
Views views(const Tensors& tensors, std::size_t first, std::int64_t count) {
  Views found;
  for (auto i = first; found.size() < static_cast<std::size_t>(count); i += 2)
    found.push_back({tensors[i], tensors[i + 1]});
  return found;
}

void add(const Views& caches, Tensors& outputs) {
  for (const KeyValueCache::View& cache : caches) {
    outputs.push_back(cache.keys);
    outputs.push_back(cache.values);
  }
}

// The logits, then the keys and values of the inputs' cache.
Tensors logits_and_caches(Model& model, const ModelInputs& inputs) {
  Tensors outputs{model.forward(inputs).logits};
  add(inputs.cache->layers(), outputs);
  return outputs;
}

Graph decoder_step(Model& model, bool all_logits) {
  const TransformerConfig& config = model.config();
  const std::int64_t layers = config.num_layers;
  const bool positioned = step_takes_positions(config);
  Pass pass(model);
  const Size batch = pass.batch(), length = pass.symbol("length", 1, lengths(kAnyLength));
  pass.ids("input_ids", {batch, length}, config.vocab_size);
  // The mask comes before the caches that say how many positions are past.
  const Size past = Size::symbol(2);
  pass.ids("attention_mask", {batch, past + length}, 2);
  if (positioned) pass.ids("position_ids", {batch, length}, config.max_length());
  pass.symbol("past", 2, lengths(kAnyLength, kPast), /*largest=*/0, /*smallest=*/0);
  pass.caches(layers, "", batch, past);
  return pass.trace([&model, layers, positioned, all_logits](const Tensors& in) {
    KeyValueCache cache(views(in, positioned ? 3 : 2, layers));
    return logits_and_caches(model, {.input_ids = in[0],
                                     .attention_mask = in[1],
                                     .position_ids = positioned ? in[2] : at::Tensor(),
                                     .cache = &cache,
                                     .last_logits_only = !all_logits});
  });
}

Graph encode(Model& model) {
  const TransformerConfig& config = model.config();
  Pass pass(model);
  const Size batch = pass.batch(),
             length = pass.symbol("length", 1, lengths(config.max_length()), config.max_length());
  pass.ids("input_ids", {batch, length}, config.vocab_size);
  pass.ids("attention_mask", {batch, length}, 2);
  return pass.trace([parts = model.parts()](const Tensors& in) {
    const at::Tensor embedded = parts.embeddings->forward(EmbeddingInputs{.ids = in[0]});
    return Tensors{parts.encoder->forward({.embeddings = embedded, .attention_mask = in[1]}).hidden};
  });
}

Graph start(Model& model) {
  const TransformerConfig& config = model.config();
  const std::int64_t longest = config.max_length(), layers = config.decoder_layers();
  Pass pass(model);
  const Size batch = pass.batch(), length = pass.symbol("decoder_length", 1, lengths(longest), longest);
  pass.ids("decoder_input_ids", {batch, length}, config.vocab_size);
  const Size source = pass.symbol("length", 1, reversed(lengths(longest)), longest);
  pass.reals("encoder_hidden_states", {batch, source, config.hidden_size});
  pass.ids("encoder_attention_mask", {batch, source}, 2);
  return pass.trace([&model, layers](const Tensors& in) {
    KeyValueCache cache(Views(static_cast<std::size_t>(layers)));
    Tensors outputs = logits_and_caches(
        model, {.attention_mask = in[2], .decoder_input_ids = in[0], .memory = in[1], .cache = &cache});
    for (std::int64_t i = 0; i < layers; ++i) add({cache.memory(i)}, outputs);
    return outputs;
  });
}

Graph next_step(Model& model) {
  const TransformerConfig& config = model.config();
  const std::int64_t longest = config.max_length(), layers = config.decoder_layers();
  Pass pass(model);
  const Size batch = pass.batch();
  pass.ids("decoder_input_ids", {batch, 1}, config.vocab_size);
  const Size source = pass.symbol("length", 1, lengths(longest), longest);
  pass.ids("encoder_attention_mask", {batch, source}, 2);
  pass.caches(layers, "decoder.", batch, pass.symbol("past", 2, reversed(lengths(longest - 1)), longest));
  pass.caches(layers, "encoder.", batch, source);
  return pass.trace([&model, layers, width = config.hidden_size](const Tensors& in) {
    KeyValueCache cache(views(in, 2, layers), views(in, 2 + 2 * static_cast<std::size_t>(layers), layers));
    // Of the memory itself only the sizes are read: its keys and values are given.
    const at::Tensor memory = at::empty({in[1].size(0), in[1].size(1), width}, in[2].options());
    return logits_and_caches(
        model, {.attention_mask = in[1], .decoder_input_ids = in[0], .memory = memory, .cache = &cache});
  });
}

}  // namespace

Graph forward_pass(Model& model, bool token_types) {
  const TransformerConfig& config = model.config();
  const HeadParts head = model.parts().head;
  const bool two_stacks = config.shape == Shape::kEncoderDecoder;
  if (two_stacks && (head.tokens == HeadParts::Tokens::kLastEnd || head.is_span))
    throw Error("an encoder-decoder's ", head.is_span ? "question-answering head" : "classifier",
                " cannot be exported as a program");
  const bool typed = token_types && config.type_vocab_size > 0;
  Pass pass(model);
  const Size batch = takes_one_row(model) ? Size(1) : pass.batch();
  const Size length = pass.symbol("length", 1, lengths(config.max_length()), config.max_length());
  pass.ids("input_ids", {batch, length}, config.vocab_size);
  pass.ids("attention_mask", {batch, length}, 2);
  if (typed) pass.ids("token_type_ids", {batch, length}, config.type_vocab_size);
  if (two_stacks)
    pass.ids("decoder_input_ids",
             {batch,
              pass.symbol("decoder_length", 1, reversed(lengths(config.max_length())), config.max_length())},
             config.vocab_size);
  return pass.trace([&model, typed, two_stacks](const Tensors& in) {
    return exported_outputs(model.forward({.input_ids = in[0],
                                           .attention_mask = in[1],
                                           .token_type_ids = typed ? in[2] : at::Tensor(),
                                           .decoder_input_ids = two_stacks ? in.back() : at::Tensor()}));
  });
}

DecodingPasses decoding_passes(Model& model, bool all_logits) {
  const TransformerConfig& config = model.config();
  if (config.rope_scaling.depends_on_length())
    throw Error(
        "no exported program can decode with positions that depend on a text's length (rope_scaling = ",
        config.rope_scaling.kind == RopeScalingKind::kDynamic ? "dynamic" : "longrope",
        "): they would turn the keys of its cache");
  if (config.shape != Shape::kEncoderDecoder) return {.step = decoder_step(model, all_logits)};
  return {.encode = encode(model), .start = start(model), .step = next_step(model)};
}

bool step_takes_positions(const TransformerConfig& config) {
  return config.takes_positions() && config.position_count != PositionCount::kNotPadding;
}

}  // namespace zoo::graph
