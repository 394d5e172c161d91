#include "models/layers/interventions.h"

#include <algorithm>
#include <functional>

#include <ATen/ExpandUtils.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>

namespace zoo {
namespace {

const char* name_of(Shape stack) { return stack == Shape::kEncoder ? "encoder" : "decoder"; }

bool is_attention(LayerPart part) {
  return part == LayerPart::kAttention || part == LayerPart::kCrossAttention;
}

// `output` [B, T, W] with the value at the positions. `off` [B, T, W] replaces an undefined value.
at::Tensor replaced(const at::Tensor& output, const Intervention& change, const at::Tensor& off) {
  const bool everywhere = change.positions.empty();
  const at::Tensor value = change.value.defined() ? change.value.to(output.options()) : at::Tensor();
  if (change.adds && everywhere) return output + value;
  if (everywhere) return (value.defined() ? value.expand_as(output) : off).contiguous();
  const at::Tensor positions =
      at::tensor(change.positions, at::TensorOptions().dtype(at::kLong).device(output.device()));
  at::Tensor rows = off.index_select(1, positions);
  if (change.adds) rows = output.index_select(1, positions) + value;
  else if (value.defined()) rows = value.expand_as(rows);
  return output.index_copy(1, positions, rows);
}

void check_value(const Intervention& change, at::IntArrayRef expected) {
  TORCH_CHECK(change.value.defined() || !change.adds, "an intervention has no value to add");
  if (!change.value.defined()) return;
  TORCH_CHECK(at::is_expandable_to(change.value.sizes(), expected),
              "an intervention's value must broadcast to ", expected, ", got ", change.value.sizes());
}

}  // namespace

at::Tensor& LayerActivations::of(LayerPart part) {
  switch (part) {
    case LayerPart::kAttention: return attention;
    case LayerPart::kCrossAttention: return cross_attention;
    case LayerPart::kFeedForward: return feed_forward;
    default: return residual;
  }
}

at::Tensor& LayerActivations::heads_of(LayerPart part) {
  return part == LayerPart::kCrossAttention ? cross_attention_heads : attention_heads;
}

at::Tensor LayerActivations::at(const Site& site) const {
  LayerActivations same = *this;
  if (site.head < 0) return same.of(site.part);
  const at::Tensor& heads = same.heads_of(site.part);
  return heads.defined() && site.head < heads.size(1) ? heads.select(1, site.head) : at::Tensor();
}

void check_stacks(const std::vector<Intervention>& interventions, bool has_encoder, bool has_decoder) {
  for (const Intervention& change : interventions) {
    const bool exists = change.site.stack == Shape::kEncoder ? has_encoder : has_decoder;
    TORCH_CHECK(exists && change.site.stack != Shape::kEncoderDecoder,
                "an intervention is on a layer of the ", name_of(change.site.stack),
                ", which this pass does not run");
  }
}

void check_interventions(const std::vector<Intervention>& interventions, const TransformerConfig& config,
                         at::IntArrayRef embeddings) {
  for (const Intervention& change : interventions) {
    const Site& site = change.site;
    if (site.stack != config.shape) continue;
    TORCH_CHECK(site.layer >= 0 && site.layer < config.num_layers, "an intervention is on layer ", site.layer,
                " of the ", name_of(site.stack), ", which has ", config.num_layers);
    TORCH_CHECK(site.part != LayerPart::kCrossAttention || config.cross_attention,
                "an intervention is on a cross-attention, which the ", name_of(site.stack), " lacks");
    TORCH_CHECK(site.head < 0 || is_attention(site.part),
                "an intervention is on a head of a part that has none");
    TORCH_CHECK(site.head < config.num_heads, "an intervention is on head ", site.head,
                " of a layer that has ", config.num_heads);
    for (const std::int64_t position : change.positions)
      TORCH_CHECK(position >= 0 && position < embeddings[1], "an intervention is at position ", position,
                  " of a sequence of ", embeddings[1]);
    const auto unordered = std::ranges::adjacent_find(change.positions, std::ranges::greater_equal());
    TORCH_CHECK(unordered == change.positions.end(), "an intervention's positions must be ascending, got ",
                at::IntArrayRef(change.positions));
    const auto positions = static_cast<std::int64_t>(change.positions.size());
    check_value(change, {embeddings[0], positions > 0 ? positions : embeddings[1],
                         site.head < 0 ? config.hidden_size : config.head_size()});
  }
}

LayerHook::LayerHook(const std::vector<Intervention>& interventions, Shape stack, std::int64_t layer,
                     LayerActivations* record)
    : record_(record) {
  for (const Intervention& change : interventions)
    if (change.site.stack == stack && change.site.layer == layer) on_layer_.push_back(&change);
}

at::Tensor LayerHook::sublayer(LayerPart part, at::Tensor output) const {
  for (const Intervention* change : on_layer_) {
    if (change->site.part == part && change->site.head < 0)
      output = replaced(output, *change, at::zeros_like(output));
  }
  if (record_ != nullptr) record_->of(part) = output;
  return output;
}

at::Tensor LayerHook::residual(const at::Tensor& input, at::Tensor output) const {
  for (const Intervention* change : on_layer_)
    if (change->site.part == LayerPart::kResidual) output = replaced(output, *change, input);
  if (record_ != nullptr) record_->residual = output;
  return output;
}

void LayerHook::attention(LayerPart part, const AttentionInputs& inputs) const {
  if (record_ == nullptr) return;
  (part == LayerPart::kAttention ? record_->attention_inputs : record_->cross_attention_inputs) = inputs;
}

at::Tensor LayerHook::heads(LayerPart part, at::Tensor outputs) const {
  std::vector<at::Tensor> heads;  // [B, T, D] each; empty until one is replaced
  for (const Intervention* change : on_layer_) {
    if (change->site.part != part || change->site.head < 0) continue;
    if (heads.empty()) heads = outputs.unbind(1);
    at::Tensor& head = heads[static_cast<std::size_t>(change->site.head)];
    head = replaced(head, *change, at::zeros_like(head));
  }
  if (!heads.empty()) outputs = at::stack(heads, 1);
  if (record_ != nullptr) record_->heads_of(part) = outputs;
  return outputs;
}

}  // namespace zoo
