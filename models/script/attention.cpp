
#include "models/script/parts.h"

namespace zoo::script {
namespace {

// Text shared by self- and cross-attention.
constexpr std::string_view kHeads = R"(
def split_heads(self, x: Tensor, heads: int) -> Tensor:
    return x.view([x.size(0), x.size(1), heads, $head_dim]).transpose(1, 2)

def attend(self, q: Tensor, k: Tensor, v: Tensor, bias: Optional[Tensor], hidden_rows: Optional[Tensor],
           causal: bool) -> Tensor:
    $attention
    if hidden_rows is not None:
        y = torch.masked_fill(y, hidden_rows, 0.0)
    return self.out.forward(torch.flatten(y.transpose(1, 2), 2))
)";

constexpr std::string_view kSelfAttention = R"(
def rotate(self, x: Tensor, rotary: List[Tensor]) -> Tensor:
    $stays
    halves = torch.chunk(x, 2, -1)
    quarter_turned = torch.cat([torch.neg(halves[1]), halves[0]], -1)
    x = x * rotary[0].to(x.dtype) + quarter_turned * rotary[1].to(x.dtype)
    return $joined

def forward(self, x: Tensor, bias: Optional[Tensor], hidden_rows: Optional[Tensor], causal: bool,
            positions: List[Tensor], cache: List[Tensor], past: int) -> Tensor:
    projected = torch.split_with_sizes(self.qkv.forward(x), [$width, $kv_width, $kv_width], -1)
    q = self.split_heads($whole_query, $heads)
    k = self.split_heads($whole_key, $kv_heads)
    $head_norms
    v = self.split_heads(projected[2], $kv_heads)
    $placed
    if len(cache) > 0:
        end = past + k.size(2)
        torch.slice(cache[0], 2, past, end).copy_(k)
        torch.slice(cache[1], 2, past, end).copy_(v)
        k = torch.slice(cache[0], 2, 0, end)
        v = torch.slice(cache[1], 2, 0, end)
    return self.attend(q, k, v, bias, hidden_rows, causal)
)";

// `positions` holds the cosines and sines of rotary positions, or nothing.
constexpr std::string_view kRotated =
    R"(if len(positions) > 0:
        q = self.rotate(q, positions)
        k = self.rotate(k, positions))";

// `positions` holds the distance vectors, their rows and, with a mask, the queries that are padding.
constexpr std::string_view kDisentangled =
    R"(if len(positions) > 2:
        q = torch.masked_fill(q, positions[2], 0.0)
    bias = self.with_distances(q, k, bias, positions))";

// Mirrors SelfAttention::with_distances and disentangled_scores().
constexpr std::string_view kWithDistances = R"(
def of_pairs(self, x: Tensor, vectors: Tensor, rows: Tensor) -> Tensor:
    return torch.gather(torch.matmul(x, vectors.transpose(-2, -1)), -1, rows.expand([x.size(0), x.size(1), -1, -1]))

def with_distances(self, q: Tensor, k: Tensor, bias: Optional[Tensor], positions: List[Tensor]) -> Tensor:
    projected = self.qkv.forward(positions[0]).view([-1, 3 * $heads, $head_dim]).transpose(0, 1)
    vectors = torch.chunk(projected, 3)
    to_position = self.of_pairs(q, vectors[1], positions[1])
    to_content = self.of_pairs(k, vectors[0], positions[1].t()).transpose(-2, -1)
    scores = (to_position + to_content) * $scale
    if len(positions) > 2:
        scores = torch.masked_fill(scores, positions[2], 0.0)
    if bias is not None:
        scores = scores + bias
    return scores
)";

constexpr std::string_view kCrossAttention = R"(
def read(self, memory: Tensor) -> List[Tensor]:
    halves = torch.chunk(self.kv.forward(memory), 2, -1)
    return [self.split_heads(halves[0], $kv_heads), self.split_heads(halves[1], $kv_heads)]

def forward(self, x: Tensor, read: List[Tensor], bias: Optional[Tensor], hidden_rows: Optional[Tensor]) -> Tensor:
    return self.attend(self.split_heads(self.q.forward(x), $heads), read[0], read[1], bias, hidden_rows, False)
)";

constexpr std::string_view kFused =
    "y = torch.scaled_dot_product_attention(q, k, v, bias, 0.0, causal, scale=$scale$gqa)";

// Mirrors explicit_attention().
constexpr std::string_view kCapped =
    R"(if $group > 1:
        k = torch.repeat_interleave(k, $group, 1)
        v = torch.repeat_interleave(v, $group, 1)
    scores = torch.tanh(torch.matmul(q, k.transpose(-2, -1)) * $scale / $cap) * $cap
    if causal:
        future = torch.triu(torch.ones([q.size(2), k.size(2)], dtype=$bool, device=q.device), 1)
        scores = torch.masked_fill(scores, future, float("-inf"))
    if bias is not None:
        scores = scores + bias
    y = torch.matmul(torch.softmax(scores, -1, $float).to(v.dtype), v))";

std::string attention_source(const TransformerConfig& config) {
  const std::int64_t group = config.num_heads / config.kv_heads();
  const std::string scale = literal(config.score_scale());
  if (config.attention_softcap > 0) {
    return fill(kCapped, {{"group", std::to_string(group)},
                          {"scale", scale},
                          {"cap", literal(config.attention_softcap)},
                          {"bool", kBoolCode},
                          {"float", kFloatCode}});
  }
  // enable_gqa only if needed, because older releases of PyTorch lack it.
  return fill(kFused, {{"scale", scale}, {"gqa", group == 1 ? "" : ", enable_gqa=True"}});
}

std::string with_heads(std::string_view text, const TransformerConfig& config) {
  const std::int64_t heads = config.num_heads, kv_heads = config.kv_heads(), head_dim = config.head_size();
  const bool partial = config.rotary_size() < head_dim;
  const std::string rotary_dim = std::to_string(config.rotary_size());
  const bool disentangled = config.position == PositionKind::kDisentangled;
  const std::string scores(disentangled ? kWithDistances : "");
  const bool whole = config.query_key_norm == QueryKeyNorm::kWhole,
             per_head = config.query_key_norm == QueryKeyNorm::kPerHead;
  return fill(
      std::string(kHeads) + scores + std::string(text),
      {{"heads", std::to_string(heads)},
       {"kv_heads", std::to_string(kv_heads)},
       {"head_dim", std::to_string(head_dim)},
       {"width", std::to_string(heads * head_dim)},
       {"kv_width", std::to_string(kv_heads * head_dim)},
       {"stays", partial ? "rest = torch.slice(x, -1, " + rotary_dim + ")\n    x = torch.slice(x, -1, 0, " +
                               rotary_dim + ")"
                         : "pass"},
       {"joined", partial ? "torch.cat([x, rest], -1)" : "x"},
       {"whole_query", whole ? "self.query_norm.forward(projected[0])" : "projected[0]"},
       {"whole_key", whole ? "self.key_norm.forward(projected[1])" : "projected[1]"},
       {"head_norms", per_head ? "q = self.query_norm.forward(q)\n    k = self.key_norm.forward(k)" : "pass"},
       {"placed", std::string(disentangled ? kDisentangled : kRotated)},
       {"scale", literal(config.score_scale())},
       {"attention", attention_source(config)}});
}

}  // namespace

ScriptPart self_attention_part(const SelfAttentionImpl& attention, const TransformerConfig& config) {
  ScriptPart part;
  part.class_name = "SelfAttention";
  part.children = {{"qkv", linear_part(*attention.qkv)}, {"out", linear_part(*attention.out)}};
  if (attention.query_norm) {
    part.children.push_back({"query_norm", norm_part(*attention.query_norm, config)});
    part.children.push_back({"key_norm", norm_part(*attention.key_norm, config)});
  }
  if (attention.position_bias)
    part.children.push_back({"position_bias", embedding_part(*attention.position_bias)});
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
