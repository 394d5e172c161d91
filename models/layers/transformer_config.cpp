#include "models/layers/transformer_config.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <sstream>
#include <string>

#include <c10/util/Exception.h>

#include "models/layers/config_fields.h"

namespace zoo {
namespace {

// Collects all faults for one message.
class Faults {
 public:
  template <class... Parts> void check(bool good, const Parts&... parts) {
    if (good) return;
    if (count_++ > 0) text_ << "; ";
    (text_ << ... << parts);
  }
  void report() const { TORCH_CHECK(count_ == 0, "the model's configuration is not valid: ", text_.str()); }

 private:
  std::ostringstream text_;
  int count_ = 0;
};

constexpr std::int64_t kMostExperts = 65'536;

void check_size(const char* name, std::int64_t value, std::int64_t least, std::string_view demand,
                Faults& faults) {
  faults.check(value >= least && value <= kLargestSize, name, " must be ", demand, ", got ", value);
}

// An element for each layer, or none.
void check_by_layer(const char* name, const std::vector<bool>& layers, const TransformerConfig& c,
                    Faults& faults) {
  faults.check(layers.empty() || static_cast<std::int64_t>(layers.size()) == c.num_layers, name,
               " must name all ", c.num_layers, " layers, got ", layers.size());
}

void check_ranges(const TransformerConfig& c, Faults& faults) {
  for (const std::string& fault : range_faults(c)) faults.check(false, fault);
  faults.check(c.num_decoder_layers >= 0 && c.num_decoder_layers <= kMostLayers,
               "num_decoder_layers must be in [0, ", kMostLayers, "], got ", c.num_decoder_layers);
}

void check_embeddings(const TransformerConfig& c, Faults& faults) {
  faults.check(c.pad_token_id >= -1 && c.pad_token_id < c.vocab_size, "pad_token_id must be in [0, ",
               c.vocab_size, "), got ", c.pad_token_id);
  faults.check(c.label_names.empty() || static_cast<std::int64_t>(c.label_names.size()) == c.num_labels,
               "there must be as many label_names as num_labels (", c.num_labels, "), got ",
               c.label_names.size());
  faults.check(c.position_count != PositionCount::kNotMasked || c.position_offset > 0,
               "positions that leave masked tokens out need a position_offset, whose last row is for these");
  if (c.position_count != PositionCount::kNotPadding) return;
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
               "rotary positions need an even head_dim, got ", c.head_size(), " of hidden_size ",
               c.hidden_size, " and num_heads ", c.num_heads);
  faults.check(c.rotary_dim >= 0 && c.rotary_dim % 2 == 0 && c.rotary_dim <= c.head_size(),
               "rotary_dim must be even and at most head_dim (", c.head_size(), "), got ", c.rotary_dim);
}

bool positive_number(double value) { return std::isfinite(value) && value > 0; }

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
    const auto pairs = static_cast<std::size_t>(std::max<std::int64_t>(c.rotary_size() / 2, 0));
    faults.check(scaling.kind != RopeScalingKind::kLongRope ||
                     (scaling.short_factors.size() == pairs && scaling.long_factors.size() == pairs &&
                      std::ranges::all_of(scaling.short_factors, positive_number) &&
                      std::ranges::all_of(scaling.long_factors, positive_number)),
                 "rope_scaling needs ", pairs, " positive short_factor and as many long_factor, got ",
                 scaling.short_factors.size(), " and ", scaling.long_factors.size());
    faults.check(!scaling.depends_on_length() || scaling.original_max_positions > 1,
                 "rope_scaling needs more than 1 original position, got ", scaling.original_max_positions);
    faults.check(
        scaling.kind != RopeScalingKind::kDynamic || (scaling.factor >= 1 && c.rotary_size() > 2),
        "dynamic rope_scaling needs a factor of at least 1 and more than 2 rotating dimensions, got ",
        scaling.factor, " and ", c.rotary_size());
  } else if (c.has_t5_buckets()) {
    check_size("relative_buckets", c.relative_buckets, 4, "at least 4", faults);
    // Half of a direction's buckets hold one distance each; the others share the distances up to the largest.
    const std::int64_t exact = c.relative_buckets / (c.shape == Shape::kEncoder ? 4 : 2);
    faults.check(c.relative_max_distance > exact, "relative_max_distance must be more than ", exact, " for ",
                 c.relative_buckets, " buckets, got ", c.relative_max_distance);
  } else if (c.position == PositionKind::kDisentangled) {
    check_size("relative_buckets", c.relative_buckets, 4, "at least 4", faults);
    faults.check(c.relative_max_distance > c.relative_buckets / 2 + 1,
                 "relative_max_distance must be more than ", c.relative_buckets / 2 + 1, " for ",
                 c.relative_buckets, " buckets, got ", c.relative_max_distance);
    faults.check(c.shape == Shape::kEncoder && c.kv_heads() == c.num_heads &&
                     c.query_key_norm == QueryKeyNorm::kNone && c.attention_softcap == 0 &&
                     c.sliding_window == 0,
                 "disentangled attention is one of encoders, without grouped heads, query_key_norm, "
                 "attention_softcap and sliding_window");
  } else if (c.position == PositionKind::kShaw) {
    check_size("relative_max_distance", c.relative_max_distance, 1, "positive", faults);
  }
}

void check_experts(const TransformerConfig& c, Faults& faults) {
  if (c.num_experts == 0) return;
  const std::string range = "in [0, " + std::to_string(kLargestSize) + "]";
  faults.check(c.num_experts > 0 && c.num_experts <= kMostExperts, "num_experts must be in [0, ",
               kMostExperts, "], got ", c.num_experts);
  faults.check(c.experts_per_token > 0 && c.experts_per_token <= c.num_experts,
               "experts_per_token must be in [1, num_experts (", c.num_experts, ")], got ",
               c.experts_per_token);
  check_size("expert_size", c.expert_size, 0, range, faults);
  check_size("shared_expert_size", c.shared_expert_size, 0, range, faults);
  check_by_layer("expert_layers", c.expert_layers, c, faults);
  faults.check(std::isfinite(c.router_loss_weight) && c.router_loss_weight >= 0,
               "router_loss_weight must not be negative, got ", c.router_loss_weight);
  faults.check(
      c.shape == Shape::kDecoder && c.sharing == Sharing::kNone && !c.feed_forward_bias && !c.cross_attention,
      "a mixture of experts is one of decoders whose layers have weights of their own, and no "
      "feed-forward biases");
}

// Options of blocks with full attention and without cross-attention only.
void check_block(const TransformerConfig& c, Faults& faults) {
  const bool plain_norms =
      c.norm_placement == NormPlacement::kPre || c.norm_placement == NormPlacement::kPost;
  faults.check(c.shape != Shape::kEncoderDecoder || plain_norms,
               "a block with cross-attention has its norms before or after the sublayers");
  faults.check(c.sublayer_order == SublayerOrder::kSequential ||
                   (c.norm_placement == NormPlacement::kPre && c.shape != Shape::kEncoderDecoder),
               "parallel sublayers have their norms before them, and no cross-attention");
  faults.check(c.residual_scale == 1 ||
                   (c.norm_placement == NormPlacement::kPre && c.shape != Shape::kEncoderDecoder &&
                    c.sublayer_order == SublayerOrder::kSequential),
               "residual_scale is one of layers with norms before their sublayers, without cross-attention");
  faults.check(
      c.first_attention_norm || (c.norm_placement == NormPlacement::kPre && c.sharing == Sharing::kNone &&
                                 c.residual_scale == 1 && c.sublayer_order == SublayerOrder::kSequential),
      "a first layer without attention norm is one of layers with norms before their sublayers");
}

void check_attention(const TransformerConfig& c, Faults& faults) {
  if (c.attention == AttentionKind::kFull) return;
  const std::string_view kind = name_of(c.attention);
  faults.check(c.sliding_window == 0 && c.attention_softcap == 0 && c.query_key_norm == QueryKeyNorm::kNone,
               kind, " attention has no sliding_window, attention_softcap or query_key_norm");
  const bool biased =
      c.position == PositionKind::kShaw || c.position == PositionKind::kDisentangled || c.has_position_bias();
  faults.check(!biased, kind, " attention cannot have ", name_of(c.position),
               " positions, which say something of every pair");
  switch (c.attention) {
    case AttentionKind::kLinear:
      faults.check(c.attention_dropout == 0,
                   "linear attention has no weights to drop: attention_dropout must be 0, got ",
                   c.attention_dropout);
      break;
    case AttentionKind::kLinformer:
      check_size("attention_projection", c.attention_projection, 1, "positive", faults);
      faults.check(c.shape == Shape::kEncoder,
                   "linformer attention mixes all positions: only an encoder has it");
      break;
    default: check_size("sparse_window", c.sparse_window, 1, "positive", faults);
  }
}

}  // namespace

TransformerConfig TransformerConfig::encoder_part() const {
  TransformerConfig part = *this;
  part.shape = Shape::kEncoder;
  part.num_decoder_layers = 0;
  part.decoder_layer_dropout = 0;
  part.cross_attention = false;
  return part;
}

TransformerConfig TransformerConfig::decoder_part() const {
  TransformerConfig part = *this;
  part.shape = Shape::kDecoder;
  part.num_layers = decoder_layers();
  part.num_decoder_layers = 0;
  part.layer_dropout = decoder_layer_dropout;
  part.decoder_layer_dropout = 0;
  part.cross_attention = true;
  return part;
}

TransformerConfig TransformerConfig::resolved() const {
  TransformerConfig all = *this;
  all.intermediate_size = feed_forward_size();
  all.num_kv_heads = kv_heads();
  if (sliding_window == 0) all.window_layers.clear();
  if (dropout == 0) all.dropped_outputs = DroppedOutputs::kAll;
  if (num_experts == 0) {
    const TransformerConfig none;
    all.experts_per_token = none.experts_per_token;
    all.expert_size = none.expert_size;
    all.expert_layers.clear();
    all.expert_weights = none.expert_weights;
    all.shared_expert_size = none.shared_expert_size;
    all.router_loss = none.router_loss;
    all.router_loss_weight = none.router_loss_weight;
  } else {
    all.expert_size = expert_width();
  }
  for (std::vector<bool>* layers : {&all.window_layers, &all.rotary_layers, &all.expert_layers})
    if (std::ranges::all_of(*layers, std::identity())) layers->clear();
  if (num_heads > 0 && rotary_dim == head_size()) all.rotary_dim = 0;
  if (window_rope_theta == rope_theta && rope_scaling.kind == RopeScalingKind::kNone)
    all.window_rope_theta = 0;
  if (shape == Shape::kEncoderDecoder) all.num_decoder_layers = decoder_layers();
  if (hidden_size > 0) all.logits_scale = output_scale();
  if (hidden_size > 0) all.embedding_scale = token_scale();
  if (hidden_size > 0 && num_heads > 0) {
    all.head_dim = head_size();
    all.attention_scale = score_scale();
  }
  return all;
}

void TransformerConfig::validate() const {
  Faults faults;
  check_ranges(*this, faults);
  check_heads(*this, faults);
  check_positions(*this, faults);
  check_attention(*this, faults);
  check_by_layer("window_layers", window_layers, *this, faults);
  check_by_layer("rotary_layers", rotary_layers, *this, faults);
  check_experts(*this, faults);
  check_block(*this, faults);
  check_embeddings(*this, faults);
  faults.report();
}

}  // namespace zoo
