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

// What computes a value that is not the default: modules alone, packed weights too, or no engine, as of sizes
// and of what acts in training, losses, initial weights and heads.
enum Engines { kModules, kPacked, kEvery };

// An enumerator, in the order of its enum. A new one has no name and is not packed until it stands here.
struct Value {
  std::string_view name;
  Engines engines;
};
constexpr Value kShapes[] = {{"encoder", kPacked}, {"decoder", kPacked}, {"encoder-decoder", kModules}};
constexpr Value kProblemTypes[] = {
    {"by_labels", kEvery}, {"regression", kEvery}, {"single_label", kEvery}, {"multi_label", kEvery}};
constexpr Value kSentencePoolings[] = {{"first", kPacked}, {"mean", kPacked}};
constexpr Value kShiftedLabels[] = {{"start_token", kEvery}, {"last_label", kEvery}};
constexpr Value kNorms[] = {{"layer_norm", kPacked},
                            {"rms_norm", kPacked},
                            {"rms_norm_plus_one", kPacked},
                            {"plain_rms_norm", kPacked}};
constexpr Value kNormPlacements[] = {
    {"pre", kPacked}, {"post", kPacked}, {"sandwich", kPacked}, {"branch_end", kPacked}};
constexpr Value kSublayerOrders[] = {
    {"sequential", kPacked}, {"parallel", kPacked}, {"parallel_one_norm", kPacked}};
constexpr Value kPositions[] = {{"none", kPacked},        {"sinusoidal", kPacked},
                                {"learned", kPacked},     {"shaw", kModules},
                                {"t5_buckets", kPacked},  {"rotary", kPacked},
                                {"alibi", kPacked},       {"learned_and_t5_buckets", kPacked},
                                {"disentangled", kPacked}};
constexpr Value kPositionCounts[] = {{"all", kPacked}, {"not_padding", kPacked}, {"not_masked", kPacked}};
constexpr Value kSinusoidOrders[] = {{"interleaved", kPacked}, {"halves", kPacked}, {"fairseq", kPacked}};
// A KV cache keeps rotated keys, and dynamic scaling would rotate each step by other angles.
constexpr Value kRopeScalings[] = {{"none", kPacked}, {"linear", kPacked},   {"llama3", kPacked},
                                   {"yarn", kPacked}, {"dynamic", kModules}, {"longrope", kPacked}};
constexpr Value kBucketTables[] = {{"one_for_all", kPacked}, {"per_layer", kPacked}};
constexpr Value kExpertWeights[] = {{"of_all", kPacked}, {"of_chosen", kPacked}};
constexpr Value kAttentions[] = {{"full", kPacked},
                                 {"sliding_window", kModules},
                                 {"strided_sparse", kModules},
                                 {"linear", kModules},
                                 {"linformer", kModules}};
constexpr Value kQueryKeyNorms[] = {{"none", kPacked}, {"per_head", kPacked}, {"whole", kPacked}};
constexpr Value kSharings[] = {{"none", kPacked}, {"all_layers", kPacked}};
constexpr Value kDroppedOutputs[] = {{"all", kEvery}, {"feed_forward", kEvery}, {"attention", kEvery}};
constexpr Value kInitialWeights[] = {
    {"normal", kEvery}, {"scaled_residuals", kEvery}, {"by_width", kEvery}, {"zero_residuals", kEvery}};

template <class Enum> std::string_view named(std::span<const Value> values, Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return index < values.size() ? values[index].name : "?";
}

std::string text_of(std::int64_t value) { return std::to_string(value); }
std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(double value) {
  std::ostringstream text;
  text.precision(std::numeric_limits<double>::max_digits10);
  text << value;
  return text.str();
}
std::string text_of(Activation activation) { return std::string(name_of(activation)); }
std::string text_of(const std::vector<std::string>& names) { return "[" + joined(names) + "]"; }
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
  Engines engines = kModules;  // of a field without `values`
  Range range = Range::kAny;
};

template <auto Member> std::string text(const C& config, std::span<const Value> values) {
  using Type = std::remove_cvref_t<decltype(config.*Member)>;
  if constexpr (std::is_enum_v<Type> && !std::is_same_v<Type, Activation>) {
    return std::string(named(values, config.*Member));
  } else {
    return text_of(config.*Member);
  }
}

template <auto Member> std::string fault(const C& config, Range range) {
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
template <auto Member> constexpr Field field(std::string_view name, std::span<const Value> values) {
  return {name, &text<Member>, &fault<Member>, values};
}

#define FIELD(member, ...) field<&C::member>(#member, __VA_ARGS__)

// Every field: whether the packed engine computes other values than its default, and the range of its
// numbers.
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
    FIELD(type_vocab_size, kPacked, Range::kSizeOrZero),
    FIELD(embedding_size, kPacked, Range::kSizeOrZero),
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
    FIELD(first_attention_norm, kPacked),
    FIELD(sublayer_order, kSublayerOrders),
    FIELD(layer_norm_eps, kEvery, Range::kPositive),
    FIELD(position, kPositions),
    FIELD(position_count, kPositionCounts),
    FIELD(position_offset, kPacked, Range::kSizeOrZero),
    FIELD(sinusoid_order, kSinusoidOrders),
    FIELD(rope_theta, kPacked),
    FIELD(rope_scaling, kRopeScalings),
    FIELD(rotary_dim, kPacked),
    FIELD(window_rope_theta, kPacked, Range::kNotNegative),
    FIELD(rotary_layers, kPacked),
    FIELD(relative_buckets, kPacked),
    FIELD(relative_max_distance, kPacked),
    FIELD(bucket_tables, kBucketTables),
    FIELD(activation, kPacked),  // but those that the packed kernels lack: PackedStack::missing()
    FIELD(num_experts, kPacked),
    FIELD(experts_per_token, kPacked),
    FIELD(expert_size, kPacked),
    FIELD(expert_layers, kPacked),
    FIELD(expert_weights, kExpertWeights),
    FIELD(shared_expert_size, kPacked),
    FIELD(router_loss, kEvery),
    FIELD(router_loss_weight, kEvery),
    FIELD(attention, kAttentions),
    FIELD(sparse_window, kModules),
    FIELD(attention_projection, kModules),
    FIELD(sliding_window, kPacked, Range::kSizeOrZero),
    FIELD(window_layers, kPacked),
    FIELD(query_key_norm, kQueryKeyNorms),
    FIELD(attention_scale, kEvery, Range::kNotNegative),
    FIELD(attention_softcap, kPacked, Range::kNotNegative),
    FIELD(cross_attention, kPacked),
    FIELD(sharing, kSharings),
    FIELD(tie_word_embeddings, kEvery),
    FIELD(tie_prediction_bias, kEvery),
    FIELD(embedding_scale, kPacked, Range::kNotNegative),
    FIELD(residual_scale, kPacked, Range::kPositive),
    FIELD(logits_scale, kPacked, Range::kNotNegative),
    FIELD(logits_softcap, kPacked, Range::kNotNegative),
    FIELD(output_bias, kPacked),
    FIELD(lm_head_bias, kPacked),
    FIELD(qkv_bias, kEvery),
    FIELD(attention_output_bias, kEvery),
    FIELD(feed_forward_bias, kEvery),
    FIELD(norm_bias, kEvery),
    FIELD(embedding_norm, kPacked),
    FIELD(embedding_dropout, kEvery, Range::kRate),
    FIELD(attention_dropout, kEvery, Range::kRate),
    FIELD(activation_dropout, kEvery, Range::kRate),
    FIELD(dropout, kEvery, Range::kRate),
    FIELD(dropped_outputs, kDroppedOutputs),
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
  template <class Type> operator Type() const;  // NOLINT(google-explicit-constructor)
};
template <std::size_t... I> constexpr bool takes_values(std::index_sequence<I...> /*numbers*/) {
  return requires { C{AnyValue(I)...}; };
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

std::vector<std::string> missing_features(const TransformerConfig& config) {
  const TransformerConfig resolved = config.resolved(), plain = TransformerConfig().resolved();
  std::vector<std::string> missing;
  for (const Field& field : kFields) {
    std::string text = field.text(resolved, field.values);
    if (text == field.text(plain, field.values)) continue;
    if (!field.values.empty()) text = text.substr(0, text.find(' '));  // "yarn 4 32": its kind
    const auto value = std::ranges::find(field.values, text, &Value::name);
    if ((value != field.values.end() ? value->engines : field.engines) == kModules)
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

std::string_view name_of(PositionKind position) { return named(kPositions, position); }
std::string_view name_of(NormKind norm) { return named(kNorms, norm); }
std::string_view name_of(AttentionKind attention) { return named(kAttentions, attention); }
std::string_view name_of(RopeScalingKind scaling) { return named(kRopeScalings, scaling); }

}  // namespace zoo
