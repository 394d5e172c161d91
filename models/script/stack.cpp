#include "models/script/stack.h"

#include <array>
#include <cmath>

#include <ATen/ops/tensor.h>
#include <c10/util/irange.h>

#include "models/layers/attention/relative_positions.h"
#include "models/script/attention.h"
#include "models/script/layers.h"

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

constexpr std::string_view kRotaryTable = R"(
def rotary_table$kind(self, length: int, past: int, x: Tensor) -> List[Tensor]:
    table: List[Tensor] = []
    $rotary
    return table
)";

// Mirrors RotaryTable::make().
constexpr std::string_view kRotary =
    R"(positions = torch.arange(past, past + length, device=x.device).to($float)
    exponents = torch.arange(0, $rotary_dim, 2, dtype=$float, device=x.device) / $rotary_dim
    frequencies = torch.reciprocal(torch.pow($theta, exponents))
    $scaling
    angles = positions.unsqueeze(-1) * frequencies
    angles = torch.cat([angles, angles], -1)
    table = [torch.cos(angles)$factor, torch.sin(angles)$factor])";

// The share of each frequency that is kept is a number for each pair.
constexpr std::string_view kYarnScaling =
    R"(kept = torch.tensor([$kept], dtype=$float, device=x.device)
    frequencies = frequencies / $factor * (1.0 - kept) + frequencies * kept)";

// The base grows with the sequence.
constexpr std::string_view kDynamicFrequencies =
    R"(stretched = $factor * max(past + length, $original) / $original - $rest
    frequencies = torch.reciprocal(torch.pow($theta * stretched ** $power, exponents)))";

// Keys in a cache are rotated by the angles that their sequence began with.
constexpr std::string_view kLongRopeFrequencies =
    R"(crosses = "a sequence of {} tokens in the cache cannot grow to {}: longrope rotates longer ones than $original otherwise".format(past, past + length)
    assert past == 0 or past > $original or past + length <= $original, crosses
    divisors = torch.tensor([$short] if past + length <= $original else [$long], dtype=$float, device=x.device)
    frequencies = torch.reciprocal(divisors * torch.pow($theta, exponents)))";

constexpr std::string_view kLinearScaling = "frequencies = frequencies / $factor";

constexpr std::string_view kLlama3Scaling =
    R"(turns = frequencies * $original / $circle
    kept = torch.clamp((turns - $low) / ($high - $low), 0.0, 1.0)
    frequencies = frequencies / $factor * (1.0 - kept) + frequencies * kept)";

// For the tables that all layers share; a layer's own is added where the layer is called.
constexpr std::string_view kPositionBias = "bias$kind = self.with_positions(bias$kind, $scores)";

// Mirrors t5_buckets().
constexpr std::string_view kT5Scores = R"(
def position_scores(self, distances: Tensor, table: Tensor) -> Tensor:
    lengths = $lengths
    far = torch.clamp(torch.log(lengths.to($float) / $exact_width) / $ranges * $far_width, 0.0).to($long) + $exact
    buckets = torch.where(lengths < $exact, lengths, torch.clamp(far, 0, $last))
    if $bidirectional:
        buckets = buckets + torch.gt(distances, 0).to($long) * $count
    return torch.permute(torch.embedding(table, buckets), [2, 0, 1]).unsqueeze(0)
)";

constexpr std::string_view kAlibiScores = R"(
def position_scores(self, distances: Tensor, x: Tensor) -> Tensor:
    slopes = torch.tensor([$slopes], dtype=$float, device=x.device).view([1, -1, 1, 1])
    return (torch.neg(torch.abs(distances)).to($float) * slopes).to(x.dtype)
)";

// Mirrors distance_rows() and TransformerStack::distances.
constexpr std::string_view kDistanceTable = R"(
def distance_table(self, attention_mask: Optional[Tensor], length: int, x: Tensor) -> List[Tensor]:
    distances = self.distances(length, 0, x)
    lengths = torch.abs(distances)
    farthest = torch.full([], $farthest, dtype=$long, device=x.device).to($float) / $exact_width
    share = torch.log(torch.clamp_min(lengths, 1).to($float) / $exact_width) / torch.log(farthest)
    far = torch.ceil(share * $ranges).to($long) + $exact
    steps = torch.where(lengths <= $exact, lengths, far) * torch.sign(distances)
    table = [self.distance_norm.forward(self.distance_vectors.weight), torch.clamp($buckets - steps, 0, $last)]
    if attention_mask is not None:
        table.append(torch.eq(attention_mask.to(x.device), 0).unsqueeze(1).unsqueeze(-1))
    return table
)";

// Nothing is hidden from padding, whose own scores are all zero.
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

std::string numbers(const at::Tensor& values) {
  std::string list;
  for (const auto i : c10::irange(values.size(0)))
    list += (list.empty() ? "" : ", ") + literal(values[i].item<double>());
  return list;
}

std::string numbers(const std::vector<double>& values) {
  return numbers(at::tensor(values, at::kDouble));
}

std::string rotary_source(const TransformerConfig& config, bool window) {
  if (config.position != PositionKind::kRotary) return "pass";
  const bool own_base = window && config.window_rope_theta > 0;
  const RopeScaling rope = own_base ? RopeScaling{} : config.rope_scaling;
  const double theta = own_base ? config.window_rope_theta : config.rope_theta;
  std::string scaling = "pass", factor;
  if (rope.kind == RopeScalingKind::kLinear)
    scaling = fill(kLinearScaling, {{"factor", literal(rope.factor)}});
  if (rope.kind == RopeScalingKind::kLlama3) {
    scaling = fill(kLlama3Scaling, {{"factor", literal(rope.factor)},
                                    {"low", literal(rope.low_frequency_factor)},
                                    {"high", literal(rope.high_frequency_factor)},
                                    {"original", literal(static_cast<double>(rope.original_max_positions))},
                                    {"circle", literal(2 * M_PI)}});
  }
  if (rope.kind == RopeScalingKind::kYarn) {
    scaling = fill(kYarnScaling, {{"kept", numbers(yarn_kept(config.rotary_size() / 2, theta, rope))},
                                  {"factor", literal(rope.factor)},
                                  {"float", kFloatCode}});
    factor = " * " + literal(rope.attention_factor);
  }
  const std::string original = std::to_string(rope.original_max_positions);
  if (rope.kind == RopeScalingKind::kDynamic) {
    const auto width = static_cast<double>(config.rotary_size());
    scaling = fill(kDynamicFrequencies, {{"factor", literal(rope.factor)},
                                         {"original", original},
                                         {"rest", literal(rope.factor - 1)},
                                         {"theta", literal(theta)},
                                         {"power", literal(width / (width - 2))}});
  }
  if (rope.kind == RopeScalingKind::kLongRope) {
    scaling = fill(kLongRopeFrequencies, {{"short", numbers(rope.short_factors)},
                                          {"long", numbers(rope.long_factors)},
                                          {"original", original},
                                          {"theta", literal(theta)},
                                          {"float", kFloatCode}});
    factor = " * " + literal(rope.attention_factor);
  }
  return fill(kRotary, {{"float", kFloatCode},
                        {"rotary_dim", std::to_string(config.rotary_size())},
                        {"theta", literal(theta)},
                        {"scaling", scaling},
                        {"factor", factor}});
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
  return fill(kAlibiScores, {{"slopes", numbers(alibi_slopes(config.num_heads))}, {"float", kFloatCode}});
}

std::string distance_rows_source(const TransformerConfig& config) {
  const std::int64_t exact = config.relative_buckets / 2;
  return fill(kDistanceTable, {{"exact_width", literal(static_cast<double>(exact))},
                               {"exact", std::to_string(exact)},
                               {"ranges", literal(static_cast<double>(exact - 1))},
                               {"farthest", std::to_string(config.relative_max_distance - 1)},
                               {"buckets", std::to_string(config.relative_buckets)},
                               {"last", std::to_string(2 * config.relative_buckets - 1)},
                               {"float", kFloatCode},
                               {"long", kLongCode}});
}

// Name of layer i; a single name if all layers share one block.
std::string block_name(std::int64_t i, const TransformerConfig& config) {
  return std::to_string(config.sharing == Sharing::kAllLayers ? 0 : i);
}

// Methods that only some stacks have.
std::string more_methods(const TransformerConfig& config) {
  std::string source;
  if (config.has_t5_buckets()) source += t5_scores(config);
  if (config.position == PositionKind::kAlibi) source += alibi_scores(config);
  if (config.position == PositionKind::kDisentangled) source += distance_rows_source(config);
  if (!config.cross_attention) return source;
  source += kReadMemory;
  for (const auto i : c10::irange(config.num_layers)) {
    source += "    read.append(getattr(self.blocks, \"" + block_name(i, config) +
              "\").cross_attention.read(memory))\n";
  }
  return source + "    return read\n";
}

// Names of a kind of layer's inputs end in it.
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
    rotary_tables += fill(kRotaryTable, {{"kind", kind}, {"rotary", rotary_source(config, window)}});
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
