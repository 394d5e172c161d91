#include <c10/util/Exception.h>

#include "models/script/parts.h"

namespace zoo::script {
namespace {

void add_weight_and_bias(ScriptPart& part, const at::Tensor& weight, const at::Tensor& bias) {
  part.parameters.emplace_back("weight", weight);
  if (bias.defined()) part.parameters.emplace_back("bias", bias);
}

std::string bias_argument(const at::Tensor& bias) {
  return bias.defined() ? "self.bias" : "None";
}

}  // namespace

std::string activation_source(Activation activation, const std::string& x) {
  if (is_gated(activation)) {
    return activation_source(gate_of(activation), "torch.chunk(" + x + ", 2, -1)[0]") + " * torch.chunk(" +
           x + ", 2, -1)[1]";
  }
  switch (activation) {
    case Activation::kRelu:
      return "torch.relu(" + x + ")";
    case Activation::kGelu:
      return "torch.gelu(" + x + ")";
    case Activation::kGeluTanh:
      return "torch.gelu(" + x + ", approximate=\"tanh\")";
    case Activation::kSilu:
      return "torch.silu(" + x + ")";
    case Activation::kTanh:
      return "torch.tanh(" + x + ")";
    default:
      TORCH_CHECK(false, "unknown activation ", static_cast<int>(activation));
  }
}

ScriptPart linear_part(const LinearImpl& linear) {
  return linear_part(linear.adapted_weight(), linear.bias);
}

ScriptPart linear_part(const at::Tensor& weight, const at::Tensor& bias) {
  ScriptPart part;
  part.class_name = bias.defined() ? "Linear" : "LinearWithoutBias";
  add_weight_and_bias(part, weight, bias);
  part.source = fill(R"(
def forward(self, x: Tensor) -> Tensor:
    return torch.linear(x, self.weight, $bias)
)",
                     {{"bias", bias_argument(bias)}});
  return part;
}

ScriptPart embedding_part(const EmbeddingImpl& embedding) {
  ScriptPart part;
  part.class_name = "Embedding";
  part.parameters.emplace_back("weight", embedding.weight);
  part.source = R"(
def forward(self, ids: Tensor) -> Tensor:
    return torch.embedding(self.weight, ids)
)";
  return part;
}

ScriptPart norm_part(const NormImpl& norm, const TransformerConfig& config) {
  ScriptPart part;
  add_weight_and_bias(part, norm.weight, norm.bias);
  const std::string eps = literal(config.layer_norm_eps);
  if (config.norm == NormKind::kLayerNorm) {
    part.class_name = norm.bias.defined() ? "LayerNorm" : "LayerNormWithoutBias";
    part.source = fill(R"(
def forward(self, x: Tensor) -> Tensor:
    return torch.layer_norm(x, self.weight.size(), self.weight, $bias, $eps)
)",
                       {{"bias", bias_argument(norm.bias)}, {"eps", eps}});
    return part;
  }
  part.class_name = "RmsNorm";
  part.source = fill(
      R"(
def forward(self, x: Tensor) -> Tensor:
    wide = x.to($float)
    scale = torch.rsqrt(torch.mean(torch.square(wide), [-1], True) + $eps)
    return $result
)",
      {{"float", kFloatCode},
       {"eps", eps},
       {"result", config.norm == NormKind::kRmsNormPlusOne
                      ? "(wide * scale * (self.weight.to(" + std::string(kFloatCode) + ") + 1)).to(x.dtype)"
                      : "self.weight * (wide * scale).to(x.dtype)"}});
  return part;
}

ScriptPart feed_forward_part(const FeedForwardImpl& feed_forward, const TransformerConfig& config) {
  ScriptPart part;
  part.class_name = "FeedForward";
  part.children = {{"up", linear_part(*feed_forward.up)}, {"down", linear_part(*feed_forward.down)}};
  part.source = fill(R"(
def forward(self, x: Tensor) -> Tensor:
    h = self.up.forward(x)
    return self.down.forward($activation)
)",
                     {{"activation", activation_source(config.activation, "h")}});
  return part;
}

namespace {

// Mirrors ExpertsImpl::forward(), in a loop over the experts.
constexpr std::string_view kExperts = R"(
def forward(self, x: Tensor) -> Tensor:
    rows = x.reshape([-1, x.size(-1)])
    weights, chosen = torch.topk(torch.softmax(self.router.forward(rows), -1, $float), $per_token, -1)
    $normalized
    weights = weights.to(x.dtype)
    outputs = torch.zeros([rows.size(0), $per_token, rows.size(1)], dtype=x.dtype, device=x.device)
    for e in range($experts):
        places = torch.nonzero(torch.eq(chosen, e))
        if places.size(0) > 0:
            tokens = torch.select(places, 1, 0)
            h = torch.linear(torch.index_select(rows, 0, tokens), torch.slice(self.up.weight, 0, e * $up, (e + 1) * $up))
            y = torch.linear($activation, torch.slice(self.down.weight, 0, e * $down, (e + 1) * $down))
            outputs = torch.index_put(outputs, [tokens, torch.select(places, 1, 1)], y)
    y = torch.sum(outputs * weights.unsqueeze(-1), [1])
    $shared
    return y.view(x.size())
)";

}  // namespace

ScriptPart experts_part(const ExpertsImpl& experts, const TransformerConfig& config) {
  ScriptPart part;
  part.class_name = "Experts";
  part.children = {{"router", linear_part(*experts.router)},
                   {"up", linear_part(*experts.up)},
                   {"down", linear_part(*experts.down)}};
  if (experts.shared) {
    part.children.push_back({"shared", feed_forward_part(*experts.shared, config)});
    part.children.push_back({"shared_gate", linear_part(*experts.shared_gate)});
  }
  part.source = fill(
      kExperts,
      {{"float", kFloatCode},
       {"per_token", std::to_string(config.experts_per_token)},
       {"experts", std::to_string(config.num_experts)},
       {"up", std::to_string(experts.up->weight.size(0) / config.num_experts)},
       {"down", std::to_string(config.hidden_size)},
       {"activation", activation_source(config.activation, "h")},
       {"normalized", config.expert_weights == ExpertWeights::kOfChosen
                          ? "weights = weights / torch.sum(weights, [-1], True)"
                          : "pass"},
       {"shared", experts.shared
                      ? "y = y + torch.sigmoid(self.shared_gate.forward(rows)) * self.shared.forward(rows)"
                      : "pass"}});
  return part;
}

}  // namespace zoo::script
