#include "models/layers/transformer_config.h"

#include <sstream>
#include <string>

#include <c10/util/Exception.h>

namespace zoo {
namespace {

// Collects every fault, so that one message shows all of them.
class Faults {
 public:
  template <class... Parts>
  void check(bool good, const Parts&... parts) {
    if (good) return;
    if (count_++ > 0) text_ << "; ";
    (text_ << ... << parts);
  }
  void report() const { TORCH_CHECK(count_ == 0, "the model's configuration is not valid: ", text_.str()); }

 private:
  std::ostringstream text_;
  int count_ = 0;
};

// Far beyond any model; a width of (H + 2 Hkv) D does not overflow.
constexpr std::int64_t kLargestSize = std::int64_t{1} << 30;
constexpr std::int64_t kMostLayers = 100'000;

void check_sizes(const TransformerConfig& c, Faults& faults) {
  const auto positive = [&](const char* name, std::int64_t value, std::int64_t largest = kLargestSize) {
    faults.check(value > 0, name, " must be positive, got ", value);
    faults.check(value <= largest, name, " must be at most ", largest, ", got ", value);
  };
  positive("vocab_size", c.vocab_size);
  positive("hidden_size", c.hidden_size);
  positive("num_layers", c.num_layers, kMostLayers);
  positive("num_heads", c.num_heads);
  positive("max_positions", c.max_positions);
  const auto not_negative = [&](const char* name, std::int64_t value) {
    faults.check(value >= 0, name, " must not be negative, got ", value);
    faults.check(value <= kLargestSize, name, " must be at most ", kLargestSize, ", got ", value);
  };
  not_negative("num_kv_heads", c.num_kv_heads);
  not_negative("head_dim", c.head_dim);
  not_negative("intermediate_size", c.intermediate_size);
  faults.check(c.num_decoder_layers >= 0 && c.num_decoder_layers <= kMostLayers,
               "num_decoder_layers must be in [0, ", kMostLayers, "], got ", c.num_decoder_layers);
  not_negative("type_vocab_size", c.type_vocab_size);
  not_negative("embedding_size", c.embedding_size);
  positive("num_labels", c.num_labels);
}

void check_embeddings(const TransformerConfig& c, Faults& faults) {
  faults.check(c.pad_token_id >= -1 && c.pad_token_id < c.vocab_size, "pad_token_id must be in [0, ",
               c.vocab_size, "), got ", c.pad_token_id);
  faults.check(c.label_names.empty() || static_cast<std::int64_t>(c.label_names.size()) == c.num_labels,
               "there must be as many label_names as num_labels (", c.num_labels, "), got ",
               c.label_names.size());
  if (c.position_count == PositionCount::kAll) return;
  faults.check(c.pad_token_id >= 0, "positions that leave padding out need a pad_token_id");
  faults.check(c.max_length() > 0, "max_positions (", c.max_positions,
               ") must be more than pad_token_id + 1 (", c.pad_token_id + 1, ")");
}

void check_heads(const TransformerConfig& c, Faults& faults) {
  if (c.num_heads <= 0 || c.hidden_size <= 0 || c.num_kv_heads < 0 || c.head_dim < 0) return;
  faults.check(c.head_dim > 0 || c.hidden_size % c.num_heads == 0, "hidden_size (", c.hidden_size,
               ") must be a multiple of num_heads (", c.num_heads, ")");
  faults.check(c.num_heads % c.kv_heads() == 0, "num_heads (", c.num_heads,
               ") must be a multiple of num_kv_heads (", c.kv_heads(), ")");
  faults.check(c.position != PositionKind::kRotary || c.head_size() % 2 == 0,
               "rotary positions need an even head_dim, got ", c.head_size());
}

void check_positions(const TransformerConfig& c, Faults& faults) {
  const RopeScaling& scaling = c.rope_scaling;
  if (c.position == PositionKind::kRotary) {
    faults.check(c.rope_theta > 0, "rope_theta must be positive, got ", c.rope_theta);
    faults.check(scaling.factor > 0, "the factor of rope_scaling must be positive, got ", scaling.factor);
    faults.check(
        scaling.kind != RopeScalingKind::kLlama3 ||
            (scaling.low_frequency_factor > 0 &&
             scaling.high_frequency_factor > scaling.low_frequency_factor &&
             scaling.original_max_positions > 0),
        "rope_scaling needs 0 < low_freq_factor < high_freq_factor and a positive number of original "
        "positions, got ",
        scaling.low_frequency_factor, ", ", scaling.high_frequency_factor, " and ",
        scaling.original_max_positions);
  } else if (c.position == PositionKind::kT5Buckets) {
    faults.check(c.relative_buckets >= 4 && c.relative_buckets <= kLargestSize,
                 "relative_buckets must be at least 4, got ", c.relative_buckets);
    // Half of a direction's buckets hold one distance each; the others share the distances up to the largest.
    const std::int64_t exact = c.relative_buckets / (c.shape == Shape::kEncoder ? 4 : 2);
    faults.check(c.relative_max_distance > exact, "relative_max_distance must be more than ", exact, " for ",
                 c.relative_buckets, " buckets, got ", c.relative_max_distance);
  } else if (c.position == PositionKind::kShaw) {
    faults.check(c.relative_max_distance > 0 && c.relative_max_distance <= kLargestSize,
                 "relative_max_distance must be positive, got ", c.relative_max_distance);
  }
}

void check_attention(const TransformerConfig& c, Faults& faults) {
  if (c.attention == AttentionKind::kFull) return;
  const std::string_view kind = name_of(c.attention);
  const bool biased = c.position == PositionKind::kShaw || c.position == PositionKind::kT5Buckets ||
                      c.position == PositionKind::kAlibi;
  faults.check(!biased, kind, " attention cannot have ", name_of(c.position),
               " positions, which say something of every pair");
  switch (c.attention) {
    case AttentionKind::kLinear:
      faults.check(c.attention_dropout == 0,
                   "linear attention has no weights to drop: attention_dropout must be 0, got ",
                   c.attention_dropout);
      break;
    case AttentionKind::kLinformer:
      faults.check(c.attention_projection > 0 && c.attention_projection <= kLargestSize,
                   "attention_projection must be positive, got ", c.attention_projection);
      faults.check(c.shape == Shape::kEncoder,
                   "linformer attention mixes all positions: only an encoder has it");
      break;
    default:
      faults.check(c.attention_window > 0 && c.attention_window <= kLargestSize,
                   "attention_window must be positive, got ", c.attention_window);
  }
}

void check_rates(const TransformerConfig& c, Faults& faults) {
  const auto rate = [&](const char* name, double value) {
    faults.check(value >= 0 && value < 1, name, " must be in [0, 1), got ", value);
  };
  rate("dropout", c.dropout);
  rate("attention_dropout", c.attention_dropout);
  rate("embedding_dropout", c.embedding_dropout);
  rate("activation_dropout", c.activation_dropout);
  rate("final_dropout", c.final_dropout);
  rate("classifier_dropout", c.classifier_dropout);
  rate("token_dropout", c.token_dropout);
  rate("answer_dropout", c.answer_dropout);
  faults.check(c.layer_norm_eps > 0, "layer_norm_eps must be positive, got ", c.layer_norm_eps);
  faults.check(c.initializer_range > 0, "initializer_range must be positive, got ", c.initializer_range);
  faults.check(c.attention_scale >= 0, "attention_scale must not be negative, got ", c.attention_scale);
}

}  // namespace

TransformerConfig TransformerConfig::encoder_part() const {
  TransformerConfig part = *this;
  part.shape = Shape::kEncoder;
  part.num_decoder_layers = 0;
  part.cross_attention = false;
  return part;
}

TransformerConfig TransformerConfig::decoder_part() const {
  TransformerConfig part = *this;
  part.shape = Shape::kDecoder;
  part.num_layers = decoder_layers();
  part.num_decoder_layers = 0;
  part.cross_attention = true;
  return part;
}

void TransformerConfig::validate() const {
  Faults faults;
  check_sizes(*this, faults);
  check_heads(*this, faults);
  check_positions(*this, faults);
  check_attention(*this, faults);
  check_embeddings(*this, faults);
  check_rates(*this, faults);
  faults.report();
}

std::string_view name_of(Activation activation) {
  switch (activation) {
    case Activation::kRelu:
      return "relu";
    case Activation::kGelu:
      return "gelu";
    case Activation::kGeluTanh:
      return "gelu_tanh";
    case Activation::kSilu:
      return "silu";
    case Activation::kSwiGlu:
      return "swiglu";
    case Activation::kGeGlu:
      return "geglu";
    case Activation::kReGlu:
      return "reglu";
    case Activation::kGeGluTanh:
      return "geglu_tanh";
  }
  return "?";
}

std::string_view name_of(PositionKind position) {
  switch (position) {
    case PositionKind::kNone:
      return "none";
    case PositionKind::kSinusoidal:
      return "sinusoidal";
    case PositionKind::kLearned:
      return "learned";
    case PositionKind::kShaw:
      return "shaw";
    case PositionKind::kT5Buckets:
      return "t5_buckets";
    case PositionKind::kRotary:
      return "rotary";
    case PositionKind::kAlibi:
      return "alibi";
  }
  return "?";
}

std::string_view name_of(NormKind norm) {
  return norm == NormKind::kLayerNorm ? "layer_norm" : "rms_norm";
}

std::string_view name_of(AttentionKind attention) {
  switch (attention) {
    case AttentionKind::kFull:
      return "full";
    case AttentionKind::kSlidingWindow:
      return "sliding_window";
    case AttentionKind::kStridedSparse:
      return "strided_sparse";
    case AttentionKind::kLinear:
      return "linear";
    case AttentionKind::kLinformer:
      return "linformer";
  }
  return "?";
}

bool is_gated(Activation activation) {
  return activation == Activation::kSwiGlu || activation == Activation::kGeGlu ||
         activation == Activation::kReGlu || activation == Activation::kGeGluTanh;
}

Activation gate_of(Activation activation) {
  switch (activation) {
    case Activation::kSwiGlu:
      return Activation::kSilu;
    case Activation::kGeGlu:
      return Activation::kGelu;
    case Activation::kGeGluTanh:
      return Activation::kGeluTanh;
    case Activation::kReGlu:
      return Activation::kRelu;
    default:
      return activation;
  }
}

}  // namespace zoo
