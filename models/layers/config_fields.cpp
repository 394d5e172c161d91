#include "models/layers/config_fields.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <span>
#include <sstream>
#include <type_traits>

#include "data/base/lines.h"

namespace zoo {
namespace {

using C = TransformerConfig;

// Engines that compute a value that is not the default.
using Engines = unsigned;
constexpr Engines kNone = 0, kPacked = static_cast<Engines>(Engine::kPacked),
                  kScript = static_cast<Engines>(Engine::kTorchScript), kBoth = kPacked | kScript;
// Sizes, and fields that act outside of engines: training, losses, initial weights, heads.
constexpr Engines kEvery = ~kNone;

// An enumerator, in the order of its enum. A new one has no name and no engine until it stands here.
struct Value {
  std::string_view name;
  Engines engines;
};
constexpr Value kShapes[] = {{"encoder", kBoth}, {"decoder", kBoth}, {"encoder-decoder", kScript}};
constexpr Value kProblemTypes[] = {
    {"by_labels", kEvery}, {"regression", kEvery}, {"single_label", kEvery}, {"multi_label", kEvery}};
constexpr Value kSentencePoolings[] = {{"first", kBoth}, {"mean", kBoth}};
constexpr Value kShiftedLabels[] = {{"start_token", kEvery}, {"last_label", kEvery}};
constexpr Value kNorms[] = {{"layer_norm", kBoth}, {"rms_norm", kBoth}, {"rms_norm_plus_one", kBoth}};
constexpr Value kNormPlacements[] = {
    {"pre", kBoth}, {"post", kBoth}, {"sandwich", kBoth}, {"branch_end", kBoth}};
constexpr Value kSublayerOrders[] = {
    {"sequential", kBoth}, {"parallel", kBoth}, {"parallel_one_norm", kBoth}};
constexpr Value kPositions[] = {
    {"none", kBoth},        {"sinusoidal", kBoth}, {"learned", kBoth}, {"shaw", kNone},
    {"t5_buckets", kBoth},  {"rotary", kBoth},     {"alibi", kBoth},   {"learned_and_t5_buckets", kBoth},
    {"disentangled", kBoth}};
constexpr Value kPositionCounts[] = {{"all", kBoth}, {"not_padding", kBoth}, {"not_masked", kBoth}};
constexpr Value kSinusoidOrders[] = {{"interleaved", kBoth}, {"halves", kBoth}, {"fairseq", kBoth}};
// A KV cache keeps rotated keys, and dynamic scaling would rotate each step by other angles.
constexpr Value kRopeScalings[] = {{"none", kBoth}, {"linear", kBoth},  {"llama3", kBoth},
                                   {"yarn", kBoth}, {"dynamic", kNone}, {"longrope", kPacked}};
constexpr Value kBucketTables[] = {{"one_for_all", kBoth}, {"per_layer", kBoth}};
constexpr Value kExpertWeights[] = {{"of_all", kBoth}, {"of_chosen", kBoth}};
constexpr Value kAttentions[] = {{"full", kBoth},
                                 {"sliding_window", kNone},
                                 {"strided_sparse", kNone},
                                 {"linear", kNone},
                                 {"linformer", kNone}};
constexpr Value kQueryKeyNorms[] = {{"none", kBoth}, {"per_head", kBoth}, {"whole", kBoth}};
constexpr Value kSharings[] = {{"none", kBoth}, {"all_layers", kBoth}};
constexpr Value kInitialWeights[] = {{"normal", kEvery}, {"scaled_residuals", kEvery}, {"by_width", kEvery}};

template <class Enum>
std::string_view named(std::span<const Value> values, Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return index < values.size() ? values[index].name : "?";
}

std::string text_of(std::int64_t value) {
  return std::to_string(value);
}
std::string text_of(bool value) {
  return value ? "true" : "false";
}
std::string text_of(double value) {
  std::ostringstream text;
  text.precision(std::numeric_limits<double>::max_digits10);
  text << value;
  return text.str();
}
std::string text_of(Activation activation) {
  return std::string(name_of(activation));
}
std::string text_of(const std::vector<std::string>& names) {
  return "[" + joined(names) + "]";
}
std::string text_of(const std::vector<double>& numbers) {
  std::vector<std::string> texts;
  for (const double number : numbers) texts.push_back(text_of(number));
  return text_of(texts);
}
std::string text_of(const std::vector<bool>& flags) {
  std::string text;
  for (const bool flag : flags) text += flag ? '1' : '0';
  return text;
}
std::string text_of(const RopeScaling& scaling) {
  if (scaling.kind == RopeScalingKind::kNone) return "none";
  const std::string factor = " " + text_of(scaling.factor);
  if (scaling.kind == RopeScalingKind::kLinear) return "linear" + factor;
  const std::string original = " " + text_of(scaling.original_max_positions);
  if (scaling.kind == RopeScalingKind::kDynamic) return "dynamic" + factor + original;
  if (scaling.kind == RopeScalingKind::kLongRope)
    return "longrope " + text_of(scaling.attention_factor) + original + " " + text_of(scaling.short_factors) +
           " " + text_of(scaling.long_factors);
  if (scaling.kind == RopeScalingKind::kLlama3)
    return "llama3" + factor + " " + text_of(scaling.low_frequency_factor) + " " +
           text_of(scaling.high_frequency_factor) + original;
  return "yarn" + factor + " " + text_of(scaling.beta_fast) + " " + text_of(scaling.beta_slow) + " " +
         text_of(scaling.attention_factor) + original + (scaling.truncate ? "" : " untruncated");
}

// Range of a number.
enum class Range { kAny, kPositive, kNotNegative, kSize, kSizeOrZero, kLayers, kRate };

// "must be positive"; empty for a number in its range.
std::string demand_of(double value, Range range) {
  const bool positive = range == Range::kPositive || range == Range::kSize || range == Range::kLayers;
  if (positive && !(value > 0)) return "must be positive";
  if ((range == Range::kNotNegative || range == Range::kSizeOrZero) && !(value >= 0))
    return "must not be negative";
  if (range == Range::kRate && !(value >= 0 && value < 1)) return "must be in [0, 1)";
  const std::int64_t most = range == Range::kLayers ? kMostLayers : kLargestSize;
  const bool has_most = range == Range::kLayers || range == Range::kSize || range == Range::kSizeOrZero;
  return has_most && value > static_cast<double>(most) ? "must be at most " + std::to_string(most) : "";
}

struct Field {
  std::string_view name;
  std::string (*text)(const C&, std::span<const Value> values);
  std::string (*fault)(const C&, Range range);  // "must be positive, got 0", or empty
  std::span<const Value> values;
  Engines engines = kNone;  // of a field without `values`
  Range range = Range::kAny;
};

template <auto Member>
std::string text(const C& config, std::span<const Value> values) {
  using Type = std::remove_cvref_t<decltype(config.*Member)>;
  if constexpr (std::is_enum_v<Type> && !std::is_same_v<Type, Activation>) {
    return std::string(named(values, config.*Member));
  } else {
    return text_of(config.*Member);
  }
}

template <auto Member>
std::string fault(const C& config, Range range) {
  using Type = std::remove_cvref_t<decltype(config.*Member)>;
  if constexpr (std::is_same_v<Type, std::int64_t> || std::is_same_v<Type, double>) {
    const std::string demand = demand_of(static_cast<double>(config.*Member), range);
    std::ostringstream text;
    if (!demand.empty()) text << demand << ", got " << config.*Member;
    return text.str();
  } else {
    return "";
  }
}

template <auto Member>
constexpr Field field(std::string_view name, Engines engines, Range range = Range::kAny) {
  return {name, &text<Member>, &fault<Member>, {}, engines, range};
}
template <auto Member>
constexpr Field field(std::string_view name, std::span<const Value> values) {
  return {name, &text<Member>, &fault<Member>, values};
}

#define FIELD(member, ...) field<&C::member>(#member, __VA_ARGS__)

// Every field, with the engines that compute other values than its default and the range of its numbers.
constexpr Field kFields[] = {
    FIELD(shape, kShapes),
    FIELD(vocab_size, kEvery, Range::kSize),
    FIELD(hidden_size, kEvery, Range::kSize),
    FIELD(num_layers, kEvery, Range::kLayers),
    FIELD(num_decoder_layers, kEvery),
    FIELD(num_heads, kEvery, Range::kSize),
    FIELD(num_kv_heads, kEvery, Range::kSizeOrZero),
    FIELD(head_dim, kEvery, Range::kSizeOrZero),
    FIELD(intermediate_size, kEvery, Range::kSizeOrZero),
    FIELD(max_positions, kEvery, Range::kSize),
    FIELD(type_vocab_size, kBoth, Range::kSizeOrZero),
    FIELD(embedding_size, kBoth, Range::kSizeOrZero),
    FIELD(num_labels, kEvery, Range::kSize),
    FIELD(pad_token_id, kEvery),
    FIELD(eos_token_id, kEvery),
    FIELD(label_names, kEvery),
    FIELD(problem_type, kProblemTypes),
    FIELD(sentence_pooling, kSentencePoolings),
    FIELD(trains_padding, kEvery),
    FIELD(decoder_start_token_id, kEvery),
    FIELD(shifted_labels, kShiftedLabels),
    FIELD(norm, kNorms),
    FIELD(norm_placement, kNormPlacements),
    FIELD(first_attention_norm, kBoth),
    FIELD(sublayer_order, kSublayerOrders),
    FIELD(layer_norm_eps, kEvery, Range::kPositive),
    FIELD(position, kPositions),
    FIELD(position_count, kPositionCounts),
    FIELD(position_offset, kBoth, Range::kSizeOrZero),
    FIELD(sinusoid_order, kSinusoidOrders),
    FIELD(rope_theta, kBoth),
    FIELD(rope_scaling, kRopeScalings),
    FIELD(rotary_dim, kBoth),
    FIELD(window_rope_theta, kBoth, Range::kNotNegative),
    FIELD(rotary_layers, kBoth),
    FIELD(relative_buckets, kBoth),
    FIELD(relative_max_distance, kBoth),
    FIELD(bucket_tables, kBucketTables),
    FIELD(activation, kBoth),  // but those that the packed kernels lack: PackedStack::missing()
    FIELD(num_experts, kBoth),
    FIELD(experts_per_token, kBoth),
    FIELD(expert_size, kBoth),
    FIELD(expert_layers, kBoth),
    FIELD(expert_weights, kExpertWeights),
    FIELD(shared_expert_size, kBoth),
    FIELD(router_loss, kEvery),
    FIELD(router_loss_weight, kEvery),
    FIELD(attention, kAttentions),
    FIELD(sparse_window, kNone),
    FIELD(attention_projection, kNone),
    FIELD(sliding_window, kBoth, Range::kSizeOrZero),
    FIELD(window_layers, kBoth),
    FIELD(query_key_norm, kQueryKeyNorms),
    FIELD(attention_scale, kEvery, Range::kNotNegative),
    FIELD(attention_softcap, kBoth, Range::kNotNegative),
    FIELD(cross_attention, kBoth),
    FIELD(sharing, kSharings),
    FIELD(tie_word_embeddings, kEvery),
    FIELD(tie_prediction_bias, kEvery),
    FIELD(embedding_scale, kBoth, Range::kNotNegative),
    FIELD(residual_scale, kBoth, Range::kPositive),
    FIELD(logits_scale, kBoth, Range::kNotNegative),
    FIELD(logits_softcap, kBoth, Range::kNotNegative),
    FIELD(output_bias, kBoth),
    FIELD(lm_head_bias, kBoth),
    FIELD(qkv_bias, kEvery),
    FIELD(attention_output_bias, kEvery),
    FIELD(feed_forward_bias, kEvery),
    FIELD(norm_bias, kEvery),
    FIELD(embedding_norm, kBoth),
    FIELD(embedding_dropout, kEvery, Range::kRate),
    FIELD(attention_dropout, kEvery, Range::kRate),
    FIELD(activation_dropout, kEvery, Range::kRate),
    FIELD(dropout, kEvery, Range::kRate),
    FIELD(final_dropout, kEvery, Range::kRate),
    FIELD(layer_dropout, kEvery, Range::kRate),
    FIELD(decoder_layer_dropout, kEvery, Range::kRate),
    FIELD(classifier_dropout, kEvery, Range::kRate),
    FIELD(token_dropout, kEvery, Range::kRate),
    FIELD(answer_dropout, kEvery, Range::kRate),
    FIELD(initializer_range, kEvery, Range::kPositive),
    FIELD(initial_weights, kInitialWeights),
};

#undef FIELD

// The struct takes as many values as the table has fields, and not one more: a new field does not compile
// until it stands in the table.
struct AnyValue {
  explicit AnyValue(std::size_t);
  template <class Type>
  operator Type() const;  // NOLINT(google-explicit-constructor)
};
template <std::size_t... I>
constexpr bool takes_values(std::index_sequence<I...> /*numbers*/) {
  return requires {
    C{AnyValue(I)...};
  };
}
constexpr std::size_t kCount = std::size(kFields);
static_assert(takes_values(std::make_index_sequence<kCount>()) &&
                  !takes_values(std::make_index_sequence<kCount + 1>()),
              "kFields must have every field of TransformerConfig once");

}  // namespace

std::vector<std::pair<std::string_view, std::string>> fields_of(const TransformerConfig& config) {
  const TransformerConfig resolved = config.resolved();
  std::vector<std::pair<std::string_view, std::string>> fields;
  for (const Field& field : kFields) fields.emplace_back(field.name, field.text(resolved, field.values));
  return fields;
}

std::vector<std::string> missing_features(const TransformerConfig& config, Engine engine) {
  const TransformerConfig resolved = config.resolved(), plain = TransformerConfig().resolved();
  std::vector<std::string> missing;
  for (const Field& field : kFields) {
    std::string text = field.text(resolved, field.values);
    if (text == field.text(plain, field.values)) continue;
    if (!field.values.empty()) text = text.substr(0, text.find(' '));  // "yarn 4 32": its kind
    const auto value = std::ranges::find(field.values, text, &Value::name);
    const Engines engines = value != field.values.end() ? value->engines : field.engines;
    if ((engines & static_cast<Engines>(engine)) == 0)
      missing.push_back(std::string(field.name) + " = " + text);
  }
  return missing;
}

std::vector<std::string> range_faults(const TransformerConfig& config) {
  std::vector<std::string> faults;
  for (const Field& field : kFields) {
    const std::string fault = field.fault(config, field.range);
    if (!fault.empty()) faults.push_back(std::string(field.name) + " " + fault);
  }
  return faults;
}

std::string_view name_of(PositionKind position) {
  return named(kPositions, position);
}
std::string_view name_of(NormKind norm) {
  return named(kNorms, norm);
}
std::string_view name_of(AttentionKind attention) {
  return named(kAttentions, attention);
}

}  // namespace zoo
