#include "models/script/stack.h"

#include <cmath>

#include <c10/util/irange.h>

#include "models/layers/attention/relative_positions.h"
#include "models/script/attention.h"
#include "models/script/layers.h"

namespace zoo::script {
namespace {

constexpr std::string_view kBlockHead = R"(
def forward(self, x: Tensor, bias: Optional[Tensor], hidden_rows: Optional[Tensor], causal: bool,
            rotary: List[Tensor], cache: List[Tensor], past: int$memory) -> Tensor:
)";

constexpr std::string_view kMemoryArguments =
    ", read: List[Tensor], memory_bias: Optional[Tensor], memory_hidden_rows: Optional[Tensor]";

constexpr std::string_view kPreNorm = R"(
    a = self.attention.forward(self.attention_norm.forward(x), bias, hidden_rows, causal, rotary, cache, past)
    x = x + a
    $cross
    return x + self.feed_forward.forward(self.feed_forward_norm.forward(x))
)";

constexpr std::string_view kPreNormCross =
    R"(c = self.cross_attention_norm.forward(x)
    x = x + self.cross_attention.forward(c, read, memory_bias, memory_hidden_rows))";

constexpr std::string_view kPostNorm = R"(
    a = self.attention.forward(x, bias, hidden_rows, causal, rotary, cache, past)
    x = self.attention_norm.forward(x + a)
    $cross
    return self.feed_forward_norm.forward(x + self.feed_forward.forward(x))
)";

constexpr std::string_view kPostNormCross =
    R"(c = self.cross_attention.forward(x, read, memory_bias, memory_hidden_rows)
    x = self.cross_attention_norm.forward(x + c))";

// Mirrors make_attention_mask() and TransformerStack::forward. One line per layer follows.
constexpr std::string_view kStack = R"(
def visible_keys(self, attention_mask: Optional[Tensor], length: int, past: int, x: Tensor) -> Optional[Tensor]:
    visible: Optional[Tensor] = None
    if attention_mask is not None:
        shape = "attention_mask must be [batch, {}], got {}".format(past + length, attention_mask.size())
        assert attention_mask.dim() == 2 and attention_mask.size(1) == past + length, shape
        visible = torch.ne(attention_mask.to(x.device), 0).unsqueeze(1).unsqueeze(1)
    if $causal and length > 1 and ($biased or visible is not None or past > 0):
        seen = torch.tril(torch.ones([length, past + length], dtype=$bool, device=x.device), past)
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

def rotary_table(self, length: int, past: int, x: Tensor) -> List[Tensor]:
    table: List[Tensor] = []
    $rotary
    return table

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
    bias: Optional[Tensor] = None
    hidden_rows: Optional[Tensor] = None
    visible = self.visible_keys(attention_mask, length, past, x)
    if visible is not None:
        hidden = torch.logical_not(torch.any(visible, -1, True))
        bias = self.bias_of(visible, hidden, length, x)
        hidden_rows = hidden
    causal = $causal and length > 1 and visible is None
    $position_bias
    rotary = self.rotary_table(length, past, x)
    none: List[Tensor] = []
    $memory_mask
)";

// Mirrors RotaryTable::make().
constexpr std::string_view kRotary =
    R"(positions = torch.arange(past, past + length, device=x.device).to($float)
    exponents = torch.arange(0, $head_dim, 2, dtype=$float, device=x.device) / $head_dim
    frequencies = torch.reciprocal(torch.pow($theta, exponents))
    $scaling
    angles = positions.unsqueeze(-1) * frequencies
    angles = torch.cat([angles, angles], -1)
    table = [torch.cos(angles), torch.sin(angles)])";

constexpr std::string_view kLinearScaling = "frequencies = frequencies / $factor";

constexpr std::string_view kLlama3Scaling =
    R"(turns = frequencies * $original / $circle
    kept = torch.clamp((turns - $low) / ($high - $low), 0.0, 1.0)
    frequencies = frequencies / $factor * (1.0 - kept) + frequencies * kept)";

constexpr std::string_view kPositionBias =
    R"(positions = self.position_scores(self.distances(length, past, x), x)
    if bias is not None:
        bias = bias + positions
    else:
        bias = positions)";

// Mirrors t5_buckets().
constexpr std::string_view kT5Scores = R"(
def position_scores(self, distances: Tensor, x: Tensor) -> Tensor:
    lengths = $lengths
    far = torch.clamp(torch.log(lengths.to($float) / $exact_width) / $ranges * $far_width, 0.0).to($long) + $exact
    buckets = torch.where(lengths < $exact, lengths, torch.clamp(far, 0, $last))
    if $bidirectional:
        buckets = buckets + torch.gt(distances, 0).to($long) * $count
    return torch.permute(torch.embedding(self.position_bias.weight, buckets), [2, 0, 1]).unsqueeze(0)
)";

constexpr std::string_view kAlibiScores = R"(
def position_scores(self, distances: Tensor, x: Tensor) -> Tensor:
    slopes = torch.tensor([$slopes], dtype=$float, device=x.device).view([1, -1, 1, 1])
    return (torch.neg(torch.abs(distances)).to($float) * slopes).to(x.dtype)
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

std::string rotary_source(const TransformerConfig& config) {
  if (config.position != PositionKind::kRotary) return "pass";
  const RopeScaling& rope = config.rope_scaling;
  std::string scaling = "pass";
  if (rope.kind == RopeScalingKind::kLinear)
    scaling = fill(kLinearScaling, {{"factor", literal(rope.factor)}});
  if (rope.kind == RopeScalingKind::kLlama3) {
    scaling = fill(kLlama3Scaling, {{"factor", literal(rope.factor)},
                                    {"low", literal(rope.low_frequency_factor)},
                                    {"high", literal(rope.high_frequency_factor)},
                                    {"original", literal(static_cast<double>(rope.original_max_positions))},
                                    {"circle", literal(2 * M_PI)}});
  }
  return fill(kRotary, {{"float", kFloatCode},
                        {"head_dim", std::to_string(config.head_size())},
                        {"theta", literal(config.rope_theta)},
                        {"scaling", scaling}});
}

std::string t5_scores(const TransformerConfig& config) {
  const bool causal = config.shape == Shape::kDecoder;
  const std::int64_t count = causal ? config.relative_buckets : config.relative_buckets / 2;
  const std::int64_t exact = count / 2;
  const double ranges =
      std::log(static_cast<double>(config.relative_max_distance) / static_cast<double>(exact));
  return fill(kT5Scores,
              {{"lengths", causal ? "torch.neg(torch.clamp_max(distances, 0))" : "torch.abs(distances)"},
               {"exact_width", literal(static_cast<double>(exact))},
               {"ranges", literal(ranges)},
               {"far_width", literal(static_cast<double>(count - exact))},
               {"exact", std::to_string(exact)},
               {"last", std::to_string(count - 1)},
               {"count", std::to_string(count)},
               {"bidirectional", causal ? "False" : "True"},
               {"float", kFloatCode},
               {"long", kLongCode}});
}

std::string alibi_scores(const TransformerConfig& config) {
  const at::Tensor slopes = alibi_slopes(config.num_heads);
  std::string list;
  for (const auto head : c10::irange(config.num_heads)) {
    list += (list.empty() ? "" : ", ") + literal(slopes[head].item<double>());
  }
  return fill(kAlibiScores, {{"slopes", list}, {"float", kFloatCode}});
}

// Name of layer i; a single name if all layers share one block.
std::string block_name(std::int64_t i, const TransformerConfig& config) {
  return std::to_string(config.sharing == Sharing::kAllLayers ? 0 : i);
}

// Methods that only some stacks have.
std::string more_methods(const TransformerConfig& config) {
  std::string source;
  if (config.position == PositionKind::kT5Buckets) source += t5_scores(config);
  if (config.position == PositionKind::kAlibi) source += alibi_scores(config);
  if (!config.cross_attention) return source;
  source += kReadMemory;
  for (const auto i : c10::irange(config.num_layers)) {
    source += "    read.append(getattr(self.blocks, \"" + block_name(i, config) +
              "\").cross_attention.read(memory))\n";
  }
  return source + "    return read\n";
}

std::string stack_source(const TransformerConfig& config) {
  const bool biased = config.position == PositionKind::kT5Buckets || config.position == PositionKind::kAlibi;
  const bool cross = config.cross_attention;
  std::string source = fill(kStack, {{"bool", kBoolCode},
                                     {"causal", config.shape == Shape::kDecoder ? "True" : "False"},
                                     {"biased", biased ? "True" : "False"},
                                     {"head_dim", std::to_string(config.head_size())},
                                     {"kv_heads", std::to_string(config.kv_heads())},
                                     {"layers", std::to_string(config.num_layers)},
                                     {"rotary", rotary_source(config)},
                                     {"position_bias", biased ? std::string(kPositionBias) : "pass"},
                                     {"memory", cross ? std::string(kStackMemory) : ""},
                                     {"memory_mask", cross ? std::string(kMemoryMask) : "pass"},
                                     {"more_methods", more_methods(config)}});
  for (const auto i : c10::irange(config.num_layers)) {
    const std::string layer = std::to_string(i);
    source += "    x = getattr(self.blocks, \"" + block_name(i, config) +
              "\").forward(x, bias, hidden_rows, causal, rotary, none if len(caches) == 0 else caches[" +
              layer + "], past" + (cross ? ", read[" + layer + "], memory_bias, memory_hidden_rows" : "") +
              ")\n";
  }
  const bool last_norm = config.norm_placement == NormPlacement::kPre;
  return source + (last_norm ? "    return self.final_norm.forward(x)\n" : "    return x\n");
}

}  // namespace

ScriptPart block_part(const BlockImpl& block, const TransformerConfig& config) {
  const bool pre = config.norm_placement == NormPlacement::kPre, cross = config.cross_attention;
  ScriptPart part;
  part.class_name = cross ? "BlockWithMemory" : "Block";
  part.children = {{"attention_norm", norm_part(*block.attention_norm, config)},
                   {"attention", self_attention_part(*block.attention, config)},
                   {"feed_forward_norm", norm_part(*block.feed_forward_norm, config)},
                   {"feed_forward", feed_forward_part(*block.feed_forward, config)}};
  if (cross) {
    part.children.push_back({"cross_attention_norm", norm_part(*block.cross_attention_norm, config)});
    part.children.push_back({"cross_attention", cross_attention_part(*block.cross_attention, config)});
  }
  part.source = fill(kBlockHead, {{"memory", cross ? std::string(kMemoryArguments) : ""}}) +
                fill(pre ? kPreNorm : kPostNorm,
                     {{"cross", !cross ? "pass" : std::string(pre ? kPreNormCross : kPostNormCross)}});
  return part;
}

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
  part.source = stack_source(config);
  return part;
}

}  // namespace zoo::script
