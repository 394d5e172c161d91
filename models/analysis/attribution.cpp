#include "models/analysis/attribution.h"

#include <cmath>

#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

#include "models/layers/linear.h"
#include "models/layers/stack.h"

namespace zoo::analysis {
namespace {

at::Tensor wide(const at::Tensor& x) { return x.to(at::kDouble); }

// A norm as a linear map: its mean and scale are fixed to those of one state x [C].
class FixedNorm {
 public:
  // Without a norm, multiplies by one.
  FixedNorm(const Norm& norm, const at::Tensor& x, const TransformerConfig& config)
      : centres_(norm && config.norm == NormKind::kLayerNorm) {
    factor_ = at::ones_like(x);
    if (!norm) return;
    const at::Tensor centred = centres_ ? x - x.mean() : x;
    const double scale = 1.0 / std::sqrt(centred.square().mean().item<double>() + config.layer_norm_eps);
    factor_ = scale * wide(norm->weight) + (config.norm == NormKind::kRmsNormPlusOne ? scale : 0.0);
    if (norm->bias.defined()) bias_ = wide(norm->bias);
  }

  // Applies the map to a part [*, C] of x, without the bias.
  at::Tensor operator()(const at::Tensor& part) const {
    return (centres_ ? part - part.mean(-1, /*keepdim=*/true) : part) * factor_;
  }

  at::Tensor bias() const { return bias_.defined() ? bias_ : at::zeros_like(factor_); }

 private:
  bool centres_;
  at::Tensor factor_, bias_;
};

// Row or entry of the token, minus that of the other one.
at::Tensor row_of(const at::Tensor& rows, const LogitTarget& target) {
  const at::Tensor row = wide(rows[target.token]);
  return target.other ? row - wide(rows[*target.other]) : row;
}

void check_linear(const TransformerConfig& config, const HeadParts& head) {
  TORCH_CHECK(
      config.norm_placement != NormPlacement::kPost,
      "a logit is not a sum of the sublayers' shares in post-LN, which normalises the residual stream "
      "after each sublayer");
  TORCH_CHECK(head.is_at_every_position(),
              "a logit's shares need a head that gives logits at every position");
  TORCH_CHECK(
      !head.dense && !head.norm,
      "a logit is not a sum of the sublayers' shares where the head has a layer before its projection");
}

// The logit as a linear function of the residual stream at one position.
struct Readout {
  FixedNorm norm;
  at::Tensor direction;  // [C]

  at::Tensor operator()(const at::Tensor& part) const { return norm(part).matmul(direction); }
};

// [H]: shares of the heads' outputs [H, D] at the position in the logit, by projection and end norm.
at::Tensor head_shares(const at::Tensor& outputs, const LinearImpl& out, const Norm& end_norm,
                       const TransformerConfig& config, const Readout& readout) {
  const std::int64_t heads = outputs.size(0);
  const at::Tensor weight = wide(out.adapted_weight()).unflatten(1, {heads, -1});        // [C, H, D]
  const at::Tensor projected = (weight * outputs.unsqueeze(0)).sum(-1).transpose(0, 1);  // [H, C]
  at::Tensor sum = projected.sum(0);
  if (out.bias.defined()) sum = sum + wide(out.bias);
  return readout(config.residual_scale * FixedNorm(end_norm, sum, config)(projected));
}

}  // namespace

LogitAttribution attribute_logit(const Model& model, const Run& run, const LogitTarget& target) {
  const TransformerStackImpl& stack = head_stack(model);
  const TransformerConfig& config = stack.config();
  const HeadParts head = model.parts().head;
  check_linear(config, head);
  const at::Tensor logits = target_logits(model, run.output, target);
  const auto at_position = [&](const at::Tensor& states) {  // [B, *, T, W] to [*, W]
    return wide(states[0].select(-2, target.position));
  };
  const at::Tensor last = at_position(run.stream.back());
  const Readout readout{.norm = FixedNorm(stack.final_norm, last, config),
                        .direction = head.scale * row_of(head.weight, target)};
  LogitAttribution shares;
  shares.embeddings = readout(at_position(run.stream.front())).item<double>();
  shares.biases = readout.norm.bias().dot(readout.direction).item<double>();
  if (head.bias.defined()) shares.biases += row_of(head.bias, target).item<double>();
  shares.logit = readout(last).item<double>() + shares.biases;
  shares.capped = row_of(logits, target).item<double>();
  std::vector<at::Tensor> attention, cross, feed_forward, heads, cross_heads;
  for (std::int64_t layer = 0; layer < config.num_layers; ++layer) {
    const LayerActivations& of = run.output.activations[static_cast<std::size_t>(layer)];
    const BlockImpl& block = stack.block(layer);
    const Norm& end =
        config.norm_placement == NormPlacement::kBranchEnd ? block.attention_norm : block.attention_end_norm;
    attention.push_back(readout(at_position(of.attention)));
    feed_forward.push_back(readout(at_position(of.feed_forward)));
    heads.push_back(
        head_shares(at_position(of.attention_heads), *block.attention->out, end, config, readout));
    if (!of.cross_attention.defined()) continue;
    cross.push_back(readout(at_position(of.cross_attention)));
    cross_heads.push_back(head_shares(at_position(of.cross_attention_heads), *block.cross_attention->out,
                                      Norm(nullptr), config, readout));
  }
  shares.attention = at::stack(attention);
  shares.feed_forward = at::stack(feed_forward);
  shares.heads = at::stack(heads);
  if (!cross.empty()) {
    shares.cross_attention = at::stack(cross);
    shares.cross_heads = at::stack(cross_heads);
  }
  return shares;
}

}  // namespace zoo::analysis
