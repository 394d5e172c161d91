#include "models/layers/attention/positions.h"

#include <cmath>

#include <c10/util/irange.h>

#include "models/script/parts.h"

namespace zoo::script {
namespace {

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

// The unscaled share of each frequency is a number for each pair.
constexpr std::string_view kYarnScaling =
    R"(kept = torch.tensor([$kept], dtype=$float, device=x.device)
    frequencies = frequencies / $factor * (1.0 - kept) + frequencies * kept)";

constexpr std::string_view kLinearScaling = "frequencies = frequencies / $factor";

constexpr std::string_view kLlama3Scaling =
    R"(turns = frequencies * $original / $circle
    kept = torch.clamp((turns - $low) / ($high - $low), 0.0, 1.0)
    frequencies = frequencies / $factor * (1.0 - kept) + frequencies * kept)";

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

std::string numbers(const at::Tensor& values) {
  std::string list;
  for (const auto i : c10::irange(values.size(0)))
    list += (list.empty() ? "" : ", ") + literal(values[i].item<double>());
  return list;
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

std::string distance_table(const TransformerConfig& config) {
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

}  // namespace

std::string rotary_table_method(const TransformerConfig& config, bool window, const std::string& kind) {
  return fill(kRotaryTable, {{"kind", kind}, {"rotary", rotary_source(config, window)}});
}

std::string position_methods(const TransformerConfig& config) {
  if (config.has_t5_buckets()) return t5_scores(config);
  if (config.position == PositionKind::kAlibi) return alibi_scores(config);
  if (config.position == PositionKind::kDisentangled) return distance_table(config);
  return "";
}

}  // namespace zoo::script
