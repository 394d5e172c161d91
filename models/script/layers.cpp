#include "models/script/layers.h"

#include <cmath>

#include <c10/util/irange.h>

namespace zoo::script {
namespace {

void add_weight_and_bias(ScriptPart& part, const at::Tensor& weight, const at::Tensor& bias) {
  part.parameters.emplace_back("weight", weight);
  if (bias.defined()) part.parameters.emplace_back("bias", bias);
}

std::string bias_argument(const at::Tensor& bias) {
  return bias.defined() ? "self.bias" : "None";
}

// The expression of activate() for a variable.
std::string activation_text(Activation activation, const std::string& x) {
  const auto gated = [&](Activation gate) {
    return activation_text(gate, "torch.chunk(" + x + ", 2, -1)[0]") + " * torch.chunk(" + x + ", 2, -1)[1]";
  };
  switch (activation) {
    case Activation::kRelu:
      return "torch.relu(" + x + ")";
    case Activation::kGelu:
      return "torch.gelu(" + x + ")";
    case Activation::kGeluTanh:
      return "torch.gelu(" + x + ", approximate=\"tanh\")";
    case Activation::kSilu:
      return "torch.silu(" + x + ")";
    case Activation::kSwiGlu:
      return gated(Activation::kSilu);
    case Activation::kGeGlu:
      return gated(Activation::kGelu);
    case Activation::kReGlu:
      return gated(Activation::kRelu);
    case Activation::kGeGluTanh:
      return gated(Activation::kGeluTanh);
  }
  TORCH_CHECK(false, "unknown activation ", static_cast<int>(activation));
}

constexpr std::string_view kAttention = R"(
def split_heads(self, x: Tensor, heads: int) -> Tensor:
    return x.view([x.size(0), x.size(1), heads, $head_dim]).transpose(1, 2)

def rotate(self, x: Tensor, rotary: List[Tensor]) -> Tensor:
    halves = torch.chunk(x, 2, -1)
    quarter_turned = torch.cat([torch.neg(halves[1]), halves[0]], -1)
    return x * rotary[0].to(x.dtype) + quarter_turned * rotary[1].to(x.dtype)

def forward(self, x: Tensor, bias: Optional[Tensor], hidden_rows: Optional[Tensor], causal: bool,
            rotary: List[Tensor], cache: List[Tensor], past: int) -> Tensor:
    projected = torch.split_with_sizes(self.qkv.forward(x), [$width, $kv_width, $kv_width], -1)
    q = self.split_heads(projected[0], $heads)
    k = self.split_heads(projected[1], $kv_heads)
    v = self.split_heads(projected[2], $kv_heads)
    if len(rotary) > 0:
        q = self.rotate(q, rotary)
        k = self.rotate(k, rotary)
    if len(cache) > 0:
        end = past + k.size(2)
        torch.slice(cache[0], 2, past, end).copy_(k)
        torch.slice(cache[1], 2, past, end).copy_(v)
        k = torch.slice(cache[0], 2, 0, end)
        v = torch.slice(cache[1], 2, 0, end)
    y = torch.scaled_dot_product_attention(q, k, v, bias, 0.0, causal, scale=$scale$gqa)
    if hidden_rows is not None:
        y = torch.masked_fill(y, hidden_rows, 0.0)
    return self.out.forward(torch.flatten(y.transpose(1, 2), 2))
)";

constexpr std::string_view kBlockHead = R"(
def forward(self, x: Tensor, bias: Optional[Tensor], hidden_rows: Optional[Tensor], causal: bool,
            rotary: List[Tensor], cache: List[Tensor], past: int) -> Tensor:
)";

constexpr std::string_view kPreNorm = R"(
    a = self.attention.forward(self.attention_norm.forward(x), bias, hidden_rows, causal, rotary, cache, past)
    x = x + a
    return x + self.feed_forward.forward(self.feed_forward_norm.forward(x))
)";

constexpr std::string_view kPostNorm = R"(
    a = self.attention.forward(x, bias, hidden_rows, causal, rotary, cache, past)
    x = self.attention_norm.forward(x + a)
    return self.feed_forward_norm.forward(x + self.feed_forward.forward(x))
)";

// As make_attention_mask() and TransformerStack::forward; kRotary, below, as RotaryTable::make(). The text of
// the layers follows it, a line each.
constexpr std::string_view kStack = R"(
def visible_keys(self, attention_mask: Optional[Tensor], length: int, past: int, x: Tensor) -> Optional[Tensor]:
    visible: Optional[Tensor] = None
    if attention_mask is not None:
        shape = "attention_mask must be [batch, {}], got {}".format(past + length, attention_mask.size())
        assert attention_mask.dim() == 2 and attention_mask.size(1) == past + length, shape
        visible = torch.ne(attention_mask.to(x.device), 0).unsqueeze(1).unsqueeze(1)
    if $causal and length > 1 and (visible is not None or past > 0):
        seen = torch.tril(torch.ones([length, past + length], dtype=$bool, device=x.device), past)
        if visible is not None:
            visible = torch.logical_and(visible, seen)
        else:
            visible = seen.unsqueeze(0).unsqueeze(0)
    return visible

def rotary_table(self, length: int, past: int, x: Tensor) -> List[Tensor]:
    table: List[Tensor] = []
    $rotary
    return table

def new_caches(self, batch: int, capacity: int, like: Tensor) -> List[List[Tensor]]:
    caches: List[List[Tensor]] = []
    for i in range($layers):
        keys = torch.empty([batch, $kv_heads, capacity, $head_dim], dtype=like.dtype, device=like.device)
        caches.append([keys, torch.empty_like(keys)])
    return caches

def forward(self, x: Tensor, attention_mask: Optional[Tensor], caches: List[List[Tensor]], past: int) -> Tensor:
    length = x.size(1)
    bias: Optional[Tensor] = None
    hidden_rows: Optional[Tensor] = None
    visible = self.visible_keys(attention_mask, length, past, x)
    if visible is not None:
        hidden = torch.logical_not(torch.any(visible, -1, True))
        shown = torch.logical_or(visible, hidden)
        scores = torch.zeros(shown.size(), dtype=x.dtype, device=x.device)
        scores = torch.masked_fill(scores, torch.logical_not(shown), float("-inf"))
        bias = scores.expand([-1, -1, length, -1])
        hidden_rows = hidden
    causal = $causal and length > 1 and visible is None
    rotary = self.rotary_table(length, past, x)
    none: List[Tensor] = []
)";

constexpr std::string_view kRotary =
    R"(positions = torch.arange(past, past + length, device=x.device).to($float)
    exponents = torch.arange(0, $head_dim, 2, dtype=$float, device=x.device) / $head_dim
    angles = positions.unsqueeze(-1) * torch.reciprocal(torch.pow($theta, exponents))
    angles = torch.cat([angles, angles], -1)
    table = [torch.cos(angles), torch.sin(angles)])";

constexpr const char* kFloat = "6";  // at::kFloat
constexpr const char* kBool = "11";  // at::kBool

std::string stack_source(const TransformerConfig& config) {
  const std::string head_dim = std::to_string(config.head_size());
  std::string rotary = "pass";
  if (config.position == PositionKind::kRotary) {
    rotary =
        fill(kRotary, {{"float", kFloat}, {"head_dim", head_dim}, {"theta", literal(config.rope_theta)}});
  }
  std::string source = fill(kStack, {{"bool", kBool},
                                     {"causal", config.shape == Shape::kDecoder ? "True" : "False"},
                                     {"head_dim", head_dim},
                                     {"kv_heads", std::to_string(config.kv_heads())},
                                     {"layers", std::to_string(config.num_layers)},
                                     {"rotary", rotary}});
  for (const auto i : c10::irange(config.num_layers)) {
    const std::string layer = std::to_string(i);
    source += "    x = getattr(self.blocks, \"" + layer +
              "\").forward(x, bias, hidden_rows, causal, rotary, " + "none if len(caches) == 0 else caches[" +
              layer + "], past)\n";
  }
  const bool last_norm = config.norm_placement == NormPlacement::kPre;
  return source + (last_norm ? "    return self.final_norm.forward(x)\n" : "    return x\n");
}

}  // namespace

ScriptPart linear_part(const LinearImpl& linear) {
  ScriptPart part;
  part.class_name = linear.bias.defined() ? "Linear" : "LinearWithoutBias";
  add_weight_and_bias(part, linear.weight, linear.bias);
  part.source = fill(R"(
def forward(self, x: Tensor) -> Tensor:
    return torch.linear(x, self.weight, $bias)
)",
                     {{"bias", bias_argument(linear.bias)}});
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
    part.source = fill(
        R"(
def forward(self, x: Tensor) -> Tensor:
    return torch.layer_norm(x, [$size], self.weight, $bias, $eps)
)",
        {{"size", std::to_string(norm.weight.size(0))}, {"bias", bias_argument(norm.bias)}, {"eps", eps}});
    return part;
  }
  part.class_name = "RmsNorm";
  part.source = fill(R"(
def forward(self, x: Tensor) -> Tensor:
    wide = x.to($float)
    scale = torch.rsqrt(torch.mean(torch.square(wide), [-1], True) + $eps)
    return self.weight * (wide * scale).to(x.dtype)
)",
                     {{"float", kFloat}, {"eps", eps}});
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
                     {{"activation", activation_text(config.activation, "h")}});
  return part;
}

ScriptPart self_attention_part(const SelfAttentionImpl& attention, const TransformerConfig& config) {
  const std::int64_t heads = config.num_heads, kv_heads = config.kv_heads(), head_dim = config.head_size();
  ScriptPart part;
  part.class_name = "SelfAttention";
  part.children = {{"qkv", linear_part(*attention.qkv)}, {"out", linear_part(*attention.out)}};
  part.source = fill(kAttention, {{"heads", std::to_string(heads)},
                                  {"kv_heads", std::to_string(kv_heads)},
                                  {"head_dim", std::to_string(head_dim)},
                                  {"width", std::to_string(heads * head_dim)},
                                  {"kv_width", std::to_string(kv_heads * head_dim)},
                                  {"scale", literal(1.0 / std::sqrt(static_cast<double>(head_dim)))},
                                  // Left out where it says nothing: older releases of PyTorch do not know it.
                                  {"gqa", heads == kv_heads ? "" : ", enable_gqa=True"}});
  return part;
}

ScriptPart block_part(const BlockImpl& block, const TransformerConfig& config) {
  ScriptPart part;
  part.class_name = "Block";
  part.children = {{"attention_norm", norm_part(*block.attention_norm, config)},
                   {"attention", self_attention_part(*block.attention, config)},
                   {"feed_forward_norm", norm_part(*block.feed_forward_norm, config)},
                   {"feed_forward", feed_forward_part(*block.feed_forward, config)}};
  part.source = kBlockHead;
  part.source += config.norm_placement == NormPlacement::kPre ? kPreNorm : kPostNorm;
  return part;
}

ScriptPart stack_part(const TransformerStackImpl& stack, const TransformerConfig& config) {
  ScriptPart blocks;
  blocks.class_name = "Blocks";
  for (const auto& module : *stack.blocks) {
    blocks.children.push_back(
        {std::to_string(blocks.children.size()), block_part(*module->as<BlockImpl>(), config)});
  }
  ScriptPart part;
  part.class_name = "TransformerStack";
  part.children.push_back({"blocks", std::move(blocks)});
  if (stack.final_norm) part.children.push_back({"final_norm", norm_part(*stack.final_norm, config)});
  part.source = stack_source(config);
  return part;
}

}  // namespace zoo::script
