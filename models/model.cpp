#include "models/model.h"

#include <map>
#include <regex>

#include <ATen/ops/arange.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/full.h>
#include <c10/util/Exception.h>

#include "models/layers/embeddings.h"
#include "models/layers/initial_weights.h"
#include "models/layers/stack.h"
#include "models/ops/tracing.h"

namespace zoo {
namespace {

struct Component {
  const char* path;  // part of the parameters' names without the numbers of layers
  const char* name;
};
// In the order in which tables show them. Of several that fit a parameter the first counts.
constexpr Component kComponents[]{
    {"embeddings.token.", "token embedding"},
    {"embeddings.position.", "position embedding"},
    {"embeddings.token_type.", "token type embedding"},
    {"embeddings.projection.", "embedding projection"},
    {"embed.", "token embedding"},
    {".position_bias.", "relative positions"},
    {"stack.distance_", "relative positions"},
    {"stack.encoder.blocks.attention.", "encoder attention"},
    {"stack.encoder.blocks.feed_forward.", "encoder feed-forward"},
    {"stack.decoder.blocks.attention.", "decoder attention"},
    {"stack.decoder.blocks.cross_attention.", "decoder cross-attention"},
    {"stack.decoder.blocks.feed_forward.", "decoder feed-forward"},
    {"attention.", "attention"},
    {"qkv.", "attention"},
    {"stack.blocks.feed_forward.", "feed-forward"},
    {"stack.blocks.experts.router.", "router of experts"},
    {"stack.blocks.experts.shared", "shared expert"},
    {"stack.blocks.experts.", "experts"},
    {"embeddings.norm.", "norms"},
    {"stack.", "norms"},
    {"pooler.", "pooler"},
    {"prediction_dense.", "masked-lm head"},
    {"prediction_norm.", "masked-lm head"},
    {"prediction_bias", "masked-lm head"},
    {"decoder.", "masked-lm head"},
    {"next_sentence.", "next-sentence head"},
    {"discriminator_dense.", "replaced-token head"},
    {"discriminator.", "replaced-token head"},
    {"span.", "question-answering head"},
    {"sentence_dense.", "classifier"},
    {"sentence_classifier.", "classifier"},
    {"token_classifier.", "classifier"},
    {"score.", "classifier"},
    {"fc.", "classifier"},
    {"lm_head.", "output projection"},
    {"linear.", "output projection"},
};

std::size_t component_of(const std::string& name) {
  static const std::regex kNumber("\\b[0-9]+\\.");
  const std::string path = std::regex_replace(name, kNumber, "");  // without the number of the layer
  for (std::size_t i = 0; i < std::size(kComponents); ++i)
    if (path.find(kComponents[i].path) != path.npos) return i;
  TORCH_CHECK(false, "the parameter '", name, "' belongs to no component");
}

void initialize_children(torch::nn::Module& module, double std, const at::Generator& generator) {
  for (const auto& child : module.children()) {
    if (auto* stack = child->as<TransformerStackImpl>()) {
      initialize(*stack, stack->config(), generator);
    } else if (child->as<EncoderDecoderStackImpl>() != nullptr) {
      initialize_children(*child, std, generator);
    } else {
      initialize(*child, std, generator);
    }
  }
}

// [B]: the last position of each row where `kept` [B, T] holds.
at::Tensor last_of(const at::Tensor& kept, const at::Tensor& ids) {
  return (at::arange(ids.size(1), ids.options()) * kept).argmax(-1);
}

at::Tensor last_position(const at::Tensor& ids, const TransformerConfig& config) {
  if (config.pad_token_id >= 0) return last_of(ids.ne(config.pad_token_id), ids);
  TORCH_CHECK(
      ids.size(0) == 1,
      "to classify several sequences at once, config.json must name a pad_token_id, an id that no text "
      "has; without it --batch_size 1 classifies one by one");
  return at::full({1}, ids.size(1) - 1, ids.options());
}

at::Tensor end_position(const at::Tensor& ids, const at::Tensor& hidden, const TransformerConfig& config) {
  TORCH_CHECK(hidden.size(1) == ids.size(1),
              "sequences are classified at their own places: decoder_input_ids must be ", ids.sizes(),
              " as input_ids");
  const at::Tensor ends = ids.eq(config.eos_token_id);
  TORCH_CHECK(ops::Tracing::is_active() || ends.any(1).all().item<bool>(),
              "each sequence that is classified must have an eos_token_id (", config.eos_token_id, ")");
  return last_of(ends, ids);
}

// What the head reads of hidden [B, T, C]: all of it, or [B, C].
at::Tensor states_of(HeadParts::Tokens tokens, const at::Tensor& hidden, const ModelInputs& inputs,
                     const TransformerConfig& config) {
  const at::Tensor& ids = inputs.input_ids;
  const auto at_position = [&](const at::Tensor& position) {
    return hidden.gather(1, position.view({-1, 1, 1}).expand({-1, 1, hidden.size(2)})).squeeze(1);
  };
  switch (tokens) {
    case HeadParts::Tokens::kFirst: return hidden.select(1, 0);
    case HeadParts::Tokens::kLast: return at_position(last_position(ids, config));
    case HeadParts::Tokens::kLastEnd: return at_position(end_position(ids, hidden, config));
    case HeadParts::Tokens::kMean: return mean_of_kept(hidden, inputs.attention_mask);
    default: return hidden;
  }
}

void check_labels(const at::Tensor& labels, at::IntArrayRef expected, const char* beside) {
  TORCH_CHECK(labels.sizes() == expected, "labels must be ", expected, " as ", beside, ", got ",
              labels.sizes());
}

// logits [B, T] of tokens that seem replaced; labels [B, T], 1 for those that are.
at::Tensor flag_loss(const at::Tensor& logits, const ModelInputs& inputs) {
  at::Tensor counted = inputs.labels.ne(-100);
  if (inputs.attention_mask.defined()) counted = counted & inputs.attention_mask.ne(0);
  return at::binary_cross_entropy_with_logits(logits.masked_select(counted).to(at::kFloat),
                                              inputs.labels.masked_select(counted).to(at::kFloat));
}

at::Tensor class_loss(const HeadParts& head, const at::Tensor& logits, const ModelInputs& inputs,
                      const TransformerConfig& config) {
  const at::Tensor& labels = inputs.labels;
  if (head.labels == HeadParts::Labels::kNextSentence) {
    TORCH_CHECK(labels.dim() == 1 && labels.size(0) == logits.size(0), "labels of next sentences must be [",
                logits.size(0), "], got ", labels.sizes());
    return cross_entropy(logits, labels);
  }
  if (head.tokens != HeadParts::Tokens::kAll) return sequence_loss(logits, labels, config, inputs.loss);
  check_labels(labels, inputs.input_ids.sizes(), "input_ids");
  return head.is_flag ? flag_loss(logits, inputs) : cross_entropy(logits, labels, inputs.loss);
}

}  // namespace

void Model::run(const HeadParts& head, const ModelInputs& inputs, ModelOutput& output) const {
  if (head.has_vocabulary()) return predict_tokens(head, inputs, output);
  const bool labelled = inputs.labels.defined();
  TORCH_CHECK(head.weight.defined() || (!labelled && !inputs.targets.defined()),
              "a bare model has no loss: labels need a head");
  if (!head.weight.defined()) return;
  const at::Tensor states = states_of(head.tokens, output.last_hidden_state, inputs, config_);
  const at::Tensor logits = head.logits(head.transformed(states, is_training()));
  if (head.is_span) {
    const auto ends = logits.unbind(-1);
    output.start_logits = ends[0];
    output.end_logits = ends[1];
    if (labelled) output.loss = span_loss(ends[0], ends[1], inputs.labels);
    return;
  }
  output.logits = head.is_flag ? logits.squeeze(-1) : logits;
  if (labelled) output.loss = class_loss(head, output.logits, inputs, config_);
}

void Model::predict_tokens(const HeadParts& head, const ModelInputs& inputs, ModelOutput& output) const {
  at::Tensor hidden = output.last_hidden_state;
  if (inputs.last_logits_only) hidden = hidden.slice(1, -1);
  at::Tensor labels = inputs.targets.defined() ? inputs.targets : inputs.labels;
  const bool labelled = labels.defined();
  if (labelled)
    check_labels(labels, hidden.sizes().slice(0, 2),
                 config_.shape == Shape::kEncoderDecoder ? "decoder_input_ids" : "input_ids");
  if (labelled && !inputs.targets.defined() && head.labels == HeadParts::Labels::kNextTokens)
    labels = shift_left(labels);
  if (inputs.label_positions.defined()) {
    TORCH_CHECK(labelled, "label_positions are given without labels");
    hidden = hidden.flatten(0, 1).index_select(0, inputs.label_positions);  // [B, T, C] -> [N, C]
    labels = labels.flatten().index_select(0, inputs.label_positions);
  }
  const at::Tensor x = head.transformed(hidden, is_training());
  if (labelled && inputs.loss_only) {
    output.loss = head.vocabulary_loss(x, labels, inputs.loss);
    return;
  }
  output.logits = head.logits(x);
  if (labelled) output.loss = cross_entropy(output.logits, labels, inputs.loss);
}

void Model::initialize(at::Generator generator) {
  initialize_children(*this, config_.initializer_range, generator);
  const at::NoGradGuard no_grad;
  for (const at::Tensor& bias : parameters(/*recurse=*/false)) bias.zero_();
}

ModelOutput model_output_of(StackOutput stack) {
  return {.last_hidden_state = std::move(stack.hidden),
          .hidden_states = std::move(stack.hidden_states),
          .attentions = std::move(stack.attentions),
          .cross_attentions = std::move(stack.cross_attentions),
          .heads = std::move(stack.heads),
          .activations = std::move(stack.activations),
          .router_logits = std::move(stack.router_logits)};
}

std::string plain_message(const std::exception& error) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  return of_torch != nullptr ? of_torch->what_without_backtrace() : error.what();
}

std::vector<std::pair<std::string, std::int64_t>> Model::components() const {
  std::map<std::size_t, std::int64_t> counts;
  for (const auto& parameter : named_parameters())
    counts[component_of(parameter.key())] += parameter.value().numel();
  std::vector<std::pair<std::string, std::int64_t>> rows;
  for (const auto& [component, count] : counts) {
    const char* name = kComponents[component].name;
    if (rows.empty() || rows.back().first != name) rows.emplace_back(name, 0);
    rows.back().second += count;
  }
  const ModelParts made_of = parts();
  if (made_of.generates() && made_of.head.weight.is_same(made_of.embeddings->token->weight))
    rows.emplace_back("output projection (tied)", 0);
  return rows;
}

std::int64_t Model::parameter_count() const {
  std::int64_t sum = 0;
  for (const auto& parameter : parameters()) sum += parameter.numel();
  return sum;
}

}  // namespace zoo
