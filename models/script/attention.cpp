#include "models/script/attention.h"

#include <cmath>

#include "models/script/layers.h"

namespace zoo::script {
namespace {

// Text shared by self- and cross-attention.
constexpr std::string_view kHeads = R"(
def split_heads(self, x: Tensor, heads: int) -> Tensor:
    return x.view([x.size(0), x.size(1), heads, $head_dim]).transpose(1, 2)

def attend(self, q: Tensor, k: Tensor, v: Tensor, bias: Optional[Tensor], hidden_rows: Optional[Tensor],
           causal: bool) -> Tensor:
    y = torch.scaled_dot_product_attention(q, k, v, bias, 0.0, causal, scale=$scale$gqa)
    if hidden_rows is not None:
        y = torch.masked_fill(y, hidden_rows, 0.0)
    return self.out.forward(torch.flatten(y.transpose(1, 2), 2))
)";

constexpr std::string_view kSelfAttention = R"(
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
    return self.attend(q, k, v, bias, hidden_rows, causal)
)";

constexpr std::string_view kCrossAttention = R"(
def read(self, memory: Tensor) -> List[Tensor]:
    halves = torch.chunk(self.kv.forward(memory), 2, -1)
    return [self.split_heads(halves[0], $kv_heads), self.split_heads(halves[1], $kv_heads)]

def forward(self, x: Tensor, read: List[Tensor], bias: Optional[Tensor], hidden_rows: Optional[Tensor]) -> Tensor:
    return self.attend(self.split_heads(self.q.forward(x), $heads), read[0], read[1], bias, hidden_rows, False)
)";

std::string with_heads(std::string_view text, const TransformerConfig& config) {
  const std::int64_t heads = config.num_heads, kv_heads = config.kv_heads(), head_dim = config.head_size();
  return fill(std::string(kHeads) + std::string(text),
              {{"heads", std::to_string(heads)},
               {"kv_heads", std::to_string(kv_heads)},
               {"head_dim", std::to_string(head_dim)},
               {"width", std::to_string(heads * head_dim)},
               {"kv_width", std::to_string(kv_heads * head_dim)},
               {"scale", literal(config.score_scale())},
               // Omitted if not needed: older releases of PyTorch do not know it.
               {"gqa", heads == kv_heads ? "" : ", enable_gqa=True"}});
}

}  // namespace

ScriptPart self_attention_part(const SelfAttentionImpl& attention, const TransformerConfig& config) {
  TORCH_CHECK(config.attention == AttentionKind::kFull, "TorchScript has no text for ",
              name_of(config.attention), " attention");
  TORCH_CHECK(!attention.relative_keys, "TorchScript has no text for ", name_of(config.position),
              " positions");
  ScriptPart part;
  part.class_name = "SelfAttention";
  part.children = {{"qkv", linear_part(*attention.qkv)}, {"out", linear_part(*attention.out)}};
  part.source = with_heads(kSelfAttention, config);
  return part;
}

ScriptPart cross_attention_part(const CrossAttentionImpl& attention, const TransformerConfig& config) {
  ScriptPart part;
  part.class_name = "CrossAttention";
  part.children = {{"q", linear_part(*attention.q)},
                   {"kv", linear_part(*attention.kv)},
                   {"out", linear_part(*attention.out)}};
  part.source = with_heads(kCrossAttention, config);
  return part;
}

}  // namespace zoo::script
