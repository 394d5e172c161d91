#include <array>

#include <c10/util/irange.h>

#include "models/script/parts.h"

namespace zoo::script {
namespace {

// Mirrors make_attention_mask() and TransformerStack::forward. One line per layer follows.
constexpr std::string_view kStack = R"(
def visible_keys(self, attention_mask: Optional[Tensor], length: int, past: int, x: Tensor,
                 reach: int) -> Optional[Tensor]:
    visible: Optional[Tensor] = None
    if attention_mask is not None:
        shape = "attention_mask must be [batch, {}], got {}".format(past + length, attention_mask.size())
        assert attention_mask.dim() == 2 and attention_mask.size(1) == past + length, shape
        visible = torch.ne(attention_mask.to(x.device), 0).unsqueeze(1).unsqueeze(1)
    distant = reach < past + length - 1
    if distant or ($causal and length > 1 and ($biased or visible is not None or past > 0)):
        seen = torch.triu(torch.ones([length, past + length], dtype=$bool, device=x.device), past - reach)
        seen = torch.tril(seen, past if $causal else past + reach)
        if visible is not None:
            visible = torch.logical_and(visible, seen)
        else:
            visible = seen.unsqueeze(0).unsqueeze(0)
    return visible

def bias_of(self, visible: Tensor, hidden: Tensor, length: int, x: Tensor) -> Tensor:
    shown = torch.logical_or(visible, hidden)
    scores = torch.zeros(shown.size(), dtype=x.dtype, device=x.device)
    scores = torch.masked_fill(scores, torch.logical_not(shown), float("-inf"))
    return scores.expand([-1, -1, length, -1])

$rotary_tables
def with_positions(self, bias: Optional[Tensor], scores: Tensor) -> Tensor:
    if bias is not None:
        return bias + scores
    return scores

def distances(self, length: int, past: int, x: Tensor) -> Tensor:
    keys = torch.arange(past + length, device=x.device)
    return keys - torch.arange(past, past + length, device=x.device).unsqueeze(1)

def new_caches(self, batch: int, capacity: int, like: Tensor) -> List[List[Tensor]]:
    caches: List[List[Tensor]] = []
    for i in range($layers):
        keys = torch.empty([batch, $kv_heads, capacity, $head_dim], dtype=like.dtype, device=like.device)
        caches.append([keys, torch.empty_like(keys)])
    return caches
$more_methods
def forward(self, x: Tensor, attention_mask: Optional[Tensor], caches: List[List[Tensor]], past: int$memory) -> Tensor:
    length = x.size(1)
    none: List[Tensor] = []
    $memory_mask
)";

// Written once for the layers without a window, and once for those with one.
constexpr std::string_view kMask = R"(
    bias$kind: Optional[Tensor] = None
    hidden_rows$kind: Optional[Tensor] = None
    visible$kind = self.visible_keys(attention_mask, length, past, x, $reach)
    if visible$kind is not None:
        hidden$kind = torch.logical_not(torch.any(visible$kind, -1, True))
        bias$kind = self.bias_of(visible$kind, hidden$kind, length, x)
        hidden_rows$kind = hidden$kind
    causal$kind = $causal and length > 1 and visible$kind is None
    $position_bias
    positions$kind = self.rotary_table$kind(length, past, x)
)";

// For tables that all layers share; the call of a layer adds its own.
constexpr std::string_view kPositionBias = "bias$kind = self.with_positions(bias$kind, $scores)";

// Padding sees every key, with scores of zero.
constexpr std::string_view kDistances = R"(
    positions = self.distance_table(attention_mask, length, x)
    if len(positions) > 2 and bias is not None:
        x = torch.masked_fill(x, positions[2].squeeze(1), 0.0)
        bias = torch.masked_fill(bias, positions[2], 0.0)
        hidden_rows = None
)";

constexpr std::string_view kReadMemory = R"(
def read_memory(self, memory: Tensor) -> List[List[Tensor]]:
    read: List[List[Tensor]] = []
)";

constexpr std::string_view kStackMemory = ", read: List[List[Tensor]], memory_mask: Optional[Tensor]";

constexpr std::string_view kMemoryMask =
    R"(memory_bias: Optional[Tensor] = None
    memory_hidden_rows: Optional[Tensor] = None
    if memory_mask is not None:
        kept = torch.ne(memory_mask.to(x.device), 0).unsqueeze(1).unsqueeze(1)
        lost = torch.logical_not(torch.any(kept, -1, True))
        memory_bias = self.bias_of(kept, lost, length, x)
        memory_hidden_rows = lost)";

// Name of layer i; a single name if all layers share one block.
std::string block_name(std::int64_t i, const TransformerConfig& config) {
  return std::to_string(config.sharing == Sharing::kAllLayers ? 0 : i);
}

// Methods of some stacks only.
std::string more_methods(const TransformerConfig& config) {
  std::string source = position_methods(config);
  if (!config.cross_attention) return source;
  source += kReadMemory;
  for (const auto i : c10::irange(config.num_layers)) {
    source += "    read.append(getattr(self.blocks, \"" + block_name(i, config) +
              "\").cross_attention.read(memory))\n";
  }
  return source + "    return read\n";
}

// Ending of the names of a kind of layer's inputs.
std::string kind_of(bool window) {
  return window ? "_in_window" : "";
}

// The keys on a query's left, and in an encoder on its right, that a layer sees.
std::string reach_of(const TransformerConfig& config, bool window) {
  if (!window) return "past + length";
  return std::to_string(config.shape == Shape::kDecoder ? config.sliding_window - 1
                                                        : config.sliding_window / 2);
}

bool has_own_bias(const TransformerConfig& config) {
  return config.has_t5_buckets() && config.bucket_tables == BucketTables::kPerLayer;
}

// Scores of T5's buckets from a table, or of ALiBi.
std::string scores_source(const TransformerConfig& config, const std::string& table) {
  const std::string given = config.has_t5_buckets() ? table : "x";
  return "self.position_scores(self.distances(length, past, x), " + given + ")";
}

std::string layer_line(const TransformerConfig& config, std::int64_t i) {
  const std::string layer = std::to_string(i), kind = kind_of(config.has_window(i));
  const std::string block = "getattr(self.blocks, \"" + block_name(i, config) + "\")";
  std::string bias = "bias" + kind;
  if (has_own_bias(config))
    bias = "self.with_positions(" + bias + ", " +
           scores_source(config, block + ".attention.position_bias.weight") + ")";
  const bool placed = config.rotates(i) || config.position == PositionKind::kDisentangled;
  const std::string positions = placed ? "positions" + kind : "none";
  return "    x = " + block + ".forward(x, " + bias + ", hidden_rows" + kind + ", causal" + kind + ", " +
         positions + ", none if len(caches) == 0 else caches[" + layer + "], past" +
         (config.cross_attention ? ", read[" + layer + "], memory_bias, memory_hidden_rows" : "") + ")\n";
}

std::string stack_source(const TransformerConfig& config) {
  std::string rotary_tables, masks;
  std::array<bool, 2> has{};  // layers without and with a window
  for (const auto i : c10::irange(config.num_layers)) has[config.has_window(i)] = true;
  const bool biased = config.has_position_bias();
  const std::string scores = scores_source(config, "self.position_bias.weight");
  const bool cross = config.cross_attention;
  for (const bool window : {false, true}) {
    if (!has[window]) continue;
    const std::string kind = kind_of(window);
    rotary_tables += rotary_table_method(config, window, kind);
    masks += fill(kMask, {{"kind", kind},
                          {"reach", reach_of(config, window)},
                          {"causal", config.shape == Shape::kDecoder ? "True" : "False"},
                          {"position_bias", biased && !has_own_bias(config)
                                                ? fill(kPositionBias, {{"kind", kind}, {"scores", scores}})
                                                : "pass"}});
  }
  std::string source = fill(kStack, {{"bool", kBoolCode},
                                     {"causal", config.shape == Shape::kDecoder ? "True" : "False"},
                                     {"biased", biased ? "True" : "False"},
                                     {"head_dim", std::to_string(config.head_size())},
                                     {"kv_heads", std::to_string(config.kv_heads())},
                                     {"layers", std::to_string(config.num_layers)},
                                     {"rotary_tables", rotary_tables},
                                     {"memory", cross ? std::string(kStackMemory) : ""},
                                     {"memory_mask", cross ? std::string(kMemoryMask) : "pass"},
                                     {"more_methods", more_methods(config)}});
  source += masks;
  if (config.position == PositionKind::kDisentangled) source += kDistances;
  for (const auto i : c10::irange(config.num_layers)) source += layer_line(config, i);
  return source + (config.has_final_norm() ? "    return self.final_norm.forward(x)\n" : "    return x\n");
}

}  // namespace

ScriptPart stack_part(const TransformerStackImpl& stack, const TransformerConfig& config) {
  const std::string name = config.cross_attention ? "StackWithMemory" : "TransformerStack";
  ScriptPart blocks;
  blocks.class_name = name + "Blocks";
  for (const auto& module : *stack.blocks) {
    blocks.children.push_back(
        {std::to_string(blocks.children.size()), block_part(*module->as<BlockImpl>(), config)});
  }
  ScriptPart part;
  part.class_name = name;
  part.children.push_back({"blocks", std::move(blocks)});
  if (stack.final_norm) part.children.push_back({"final_norm", norm_part(*stack.final_norm, config)});
  if (stack.position_bias) part.children.push_back({"position_bias", embedding_part(*stack.position_bias)});
  if (stack.distance_vectors) {
    part.children.push_back({"distance_vectors", embedding_part(*stack.distance_vectors)});
    part.children.push_back({"distance_norm", norm_part(*stack.distance_norm, config)});
  }
  part.source = stack_source(config);
  return part;
}

}  // namespace zoo::script
