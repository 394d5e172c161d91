#include "models/script/parts.h"

namespace zoo::script {
namespace {

constexpr std::string_view kBlockHead = R"(
def forward(self, x: Tensor, bias: Optional[Tensor], hidden_rows: Optional[Tensor], causal: bool,
            positions: List[Tensor], cache: List[Tensor], past: int$memory) -> Tensor:
)";

constexpr std::string_view kMemoryArguments =
    ", read: List[Tensor], memory_bias: Optional[Tensor], memory_hidden_rows: Optional[Tensor]";

constexpr std::string_view kPreNorm = R"(
    a = self.attention.forward($normed, bias, hidden_rows, causal, positions, cache, past)
    x = x + a$scale
    $cross
    return x + self.feed_forward.forward(self.feed_forward_norm.forward(x))$scale
)";

constexpr std::string_view kPreNormCross =
    R"(c = self.cross_attention_norm.forward(x)
    x = x + self.cross_attention.forward(c, read, memory_bias, memory_hidden_rows))";

constexpr std::string_view kSandwich = R"(
    a = self.attention.forward(self.attention_norm.forward(x), bias, hidden_rows, causal, positions, cache, past)
    x = x + self.attention_end_norm.forward(a)
    f = self.feed_forward.forward(self.feed_forward_norm.forward(x))
    return x + self.feed_forward_end_norm.forward(f)
)";

constexpr std::string_view kBranchEnd = R"(
    a = self.attention.forward(x, bias, hidden_rows, causal, positions, cache, past)
    x = x + self.attention_norm.forward(a)
    return x + self.feed_forward_norm.forward(self.feed_forward.forward(x))
)";

constexpr std::string_view kParallel = R"(
    normed = self.attention_norm.forward(x)
    a = self.attention.forward(normed, bias, hidden_rows, causal, positions, cache, past)
    return x + a + self.feed_forward.forward($fed)
)";

constexpr std::string_view kPostNorm = R"(
    a = self.attention.forward(x, bias, hidden_rows, causal, positions, cache, past)
    x = self.attention_norm.forward(x + a)
    $cross
    return self.feed_forward_norm.forward(x + self.feed_forward.forward(x))
)";

constexpr std::string_view kPostNormCross =
    R"(c = self.cross_attention.forward(x, read, memory_bias, memory_hidden_rows)
    x = self.cross_attention_norm.forward(x + c))";

std::string block_source(const BlockImpl& block, const TransformerConfig& config) {
  if (config.sublayer_order != SublayerOrder::kSequential) {
    const bool one_norm = config.sublayer_order == SublayerOrder::kParallelOneNorm;
    return fill(kParallel, {{"fed", one_norm ? "normed" : "self.feed_forward_norm.forward(x)"}});
  }
  const auto with_cross = [&](std::string_view text, std::string_view cross) {
    return fill(text, {{"cross", config.cross_attention ? std::string(cross) : "pass"},
                       {"normed", block.attention_norm ? "self.attention_norm.forward(x)" : "x"},
                       {"scale", config.residual_scale == 1 ? "" : " * " + literal(config.residual_scale)}});
  };
  switch (config.norm_placement) {
    case NormPlacement::kPre:
      return with_cross(kPreNorm, kPreNormCross);
    case NormPlacement::kPost:
      return with_cross(kPostNorm, kPostNormCross);
    case NormPlacement::kSandwich:
      return std::string(kSandwich);
    default:
      return std::string(kBranchEnd);
  }
}

}  // namespace

ScriptPart block_part(const BlockImpl& block, const TransformerConfig& config) {
  const bool cross = config.cross_attention;
  ScriptPart part;
  part.class_name = cross ? "BlockWithMemory" : block.attention_norm ? "Block" : "FirstBlock";
  if (block.experts) part.class_name = "BlockWithExperts";
  part.children = {{"attention", self_attention_part(*block.attention, config)},
                   {"feed_forward", block.experts ? experts_part(*block.experts, config)
                                                  : feed_forward_part(*block.feed_forward, config)}};
  const auto add_norm = [&](const std::string& name, const Norm& norm) {
    if (norm) part.children.push_back({name, norm_part(*norm, config)});
  };
  add_norm("attention_norm", block.attention_norm);
  add_norm("feed_forward_norm", block.feed_forward_norm);
  add_norm("attention_end_norm", block.attention_end_norm);
  add_norm("feed_forward_end_norm", block.feed_forward_end_norm);
  if (cross) {
    add_norm("cross_attention_norm", block.cross_attention_norm);
    part.children.push_back({"cross_attention", cross_attention_part(*block.cross_attention, config)});
  }
  part.source = fill(kBlockHead, {{"memory", cross ? std::string(kMemoryArguments) : ""}}) +
                block_source(block, config);
  return part;
}

}  // namespace zoo::script
