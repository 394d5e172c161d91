#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zoo {

/// Which of Vaswani et al.'s (2017) two stacks a model has.
enum class Shape { kEncoder, kDecoder, kEncoderDecoder };

/// LayerNorm: Ba et al. (2016). RMSNorm: Zhang and Sennrich (2019).
enum class NormKind { kLayerNorm, kRmsNorm };

/// Where the norm stands, in the words of Xiong et al. (2020): kPre before the sublayer, x + f(norm(x));
/// kPost after the residual sum, norm(x + f(x)).
enum class NormPlacement { kPre, kPost };

/// kSinusoidal: Vaswani et al. (2017). kLearned: a table. kShaw: Shaw et al. (2018). kT5Buckets: Raffel et
/// al. (2020). kRotary: Su et al. (2021), over the head dimension. kAlibi: Press et al. (2022).
enum class PositionKind { kNone, kSinusoidal, kLearned, kShaw, kT5Buckets, kRotary, kAlibi };

/// How rotary frequencies are lowered for contexts longer than those of training. kLinear: all divided by the
/// factor (Chen et al., 2023). kLlama3: only those that turn slowly, with a smooth passage (Dubey et al.,
/// 2024).
enum class RopeScalingKind { kNone, kLinear, kLlama3 };

struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::kNone;
  double factor = 1.0;
  // Llama 3's alone: wavelengths above original_max_positions / low_frequency_factor are divided, those below
  // original_max_positions / high_frequency_factor are kept.
  double low_frequency_factor = 1.0;
  double high_frequency_factor = 4.0;
  std::int64_t original_max_positions = 8192;
};

/// The four before the last are gated linear units (Shazeer, 2020): activation(x W) * (x V). kTanh is that of
/// poolers and classifiers; a feed-forward does not have it.
enum class Activation { kRelu, kGelu, kGeluTanh, kSilu, kSwiGlu, kGeGlu, kReGlu, kGeGluTanh, kTanh };

/// kSlidingWindow: Beltagy et al. (2020). kStridedSparse: Child et al. (2019). kLinear: Katharopoulos et al.
/// (2020). kLinformer: Wang et al. (2020).
enum class AttentionKind { kFull, kSlidingWindow, kStridedSparse, kLinear, kLinformer };

/// kAllLayers: one block's weights serve every layer (ALBERT: Lan et al., 2020).
enum class Sharing { kNone, kAllLayers };

/// Distribution of fresh weights. kNormal: normal(0, initializer_range) (BERT). kScaledResiduals: the same,
/// and projections that end a residual branch divided by sqrt(2 * num_layers) (GPT-2: Radford et al., 2019,
/// section 2.3). kByWidth: normal(0, initializer_range / sqrt(input width)), which makes up for unscaled
/// attention (T5).
enum class InitialWeights { kNormal, kScaledResiduals, kByWidth };

/// Which tokens learned positions count. kAll: every one, from 0. kNotPadding: those that are not
/// pad_token_id, from pad_token_id + 1; padding is at pad_token_id (RoBERTa: Liu et al., 2019).
enum class PositionCount { kAll, kNotPadding };

/// What a sequence classifier's labels are, which decides its loss. kByLabels: one label is a regression,
/// integers are classes, rows of numbers are multi-label.
enum class ProblemType { kByLabels, kRegression, kSingleLabel, kMultiLabel };

/// Everything that tells one transformer from another. A family reads it from its config.json.
struct TransformerConfig {
  Shape shape = Shape::kDecoder;

  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;  // C
  std::int64_t num_layers = 0;
  std::int64_t num_decoder_layers = 0;  // of an encoder-decoder; 0: num_layers, which are its encoder's
  std::int64_t num_heads = 0;           // H
  std::int64_t num_kv_heads = 0;        // 0: as many as num_heads
  std::int64_t head_dim = 0;            // D; 0: hidden_size / num_heads
  std::int64_t intermediate_size = 0;   // F; 0: 4 * hidden_size
  std::int64_t max_positions = 0;
  std::int64_t type_vocab_size = 0;      // of BERT's segments; 0: none
  std::int64_t embedding_size = 0;       // E of a factorised embedding (ALBERT); 0: hidden_size
  std::int64_t num_labels = 2;           // of the heads that classify
  std::int64_t pad_token_id = -1;        // -1: none
  std::vector<std::string> label_names;  // num_labels of them, or none
  ProblemType problem_type = ProblemType::kByLabels;
  bool trains_padding = true;                // the embedding of pad_token_id
  std::int64_t decoder_start_token_id = -1;  // first token of an encoder-decoder's decoder; -1: none

  NormKind norm = NormKind::kLayerNorm;
  NormPlacement norm_placement = NormPlacement::kPre;
  double layer_norm_eps = 1e-5;
  PositionKind position = PositionKind::kLearned;
  PositionCount position_count = PositionCount::kAll;
  double rope_theta = 10000.0;
  RopeScaling rope_scaling;
  std::int64_t relative_buckets = 32;        // of T5's bias
  std::int64_t relative_max_distance = 128;  // T5: from there on one bucket; Shaw: the farthest told apart
  Activation activation = Activation::kGeluTanh;
  AttentionKind attention = AttentionKind::kFull;
  std::int64_t attention_window = 0;  // kSlidingWindow: keys seen on each side; kStridedSparse: its stride
  std::int64_t attention_projection = 0;  // kLinformer: mixtures that the keys become
  double attention_scale = 0.0;           // factor of the scores; 0: 1 / sqrt(D)
  bool cross_attention = false;           // every block of a decoder attends to a memory too
  Sharing sharing = Sharing::kNone;
  bool tie_word_embeddings = true;
  double logits_scale = 1.0;  // factor of the hidden state before the output projection; 0: 1 / sqrt(C) (T5)

  bool qkv_bias = true;               // in the projections to queries, keys and values
  bool attention_output_bias = true;  // in the projection of the attention's output
  bool feed_forward_bias = true;      // in the two projections of the feed-forward
  bool norm_bias = true;              // in LayerNorm
  bool embedding_norm = false;        // a norm of the sum of embeddings (BERT)

  double embedding_dropout = 0.0;
  double attention_dropout = 0.0;   // on the attention weights
  double activation_dropout = 0.0;  // inside of the feed-forward
  double dropout = 0.0;             // on what a sublayer adds to the residual stream
  double final_dropout = 0.0;       // behind the final norm
  double classifier_dropout = 0.0;  // before the projection of a head that classifies sequences
  double token_dropout = 0.0;       // the same of a head that classifies tokens
  double answer_dropout = 0.0;      // the same of question answering
  double initializer_range = 0.02;
  InitialWeights initial_weights = InitialWeights::kScaledResiduals;

  std::int64_t kv_heads() const { return num_kv_heads > 0 ? num_kv_heads : num_heads; }
  std::int64_t head_size() const { return head_dim > 0 ? head_dim : hidden_size / num_heads; }
  std::int64_t feed_forward_size() const {
    return intermediate_size > 0 ? intermediate_size : 4 * hidden_size;
  }

  double score_scale() const {
    return attention_scale != 0 ? attention_scale : 1.0 / std::sqrt(static_cast<double>(head_size()));
  }
  double output_scale() const {
    return logits_scale != 0 ? logits_scale : 1.0 / std::sqrt(static_cast<double>(hidden_size));
  }
  /// Positions are rows of a table: a sequence has at most max_length() tokens.
  bool has_position_table() const {
    return position == PositionKind::kLearned || position == PositionKind::kSinusoidal;
  }

  std::int64_t decoder_layers() const { return num_decoder_layers > 0 ? num_decoder_layers : num_layers; }

  /// The two stacks of an encoder-decoder, each a configuration of its own.
  TransformerConfig encoder_part() const;
  TransformerConfig decoder_part() const;

  /// Length of the longest sequence: RoBERTa's count leaves out the first positions.
  std::int64_t max_length() const {
    return position_count == PositionCount::kAll ? max_positions : max_positions - pad_token_id - 1;
  }
  /// The width of the embedding tables (E).
  std::int64_t embedding_width() const { return embedding_size > 0 ? embedding_size : hidden_size; }

  /// Throws c10::Error naming each field that is out of range, with its value and what it must be.
  void validate() const;
};

/// Name and value of every field, as messages show them. Sizes that stand for another (0: as many as …) are
/// given by their value, so that equal models have equal fields.
std::vector<std::pair<std::string_view, std::string>> fields_of(const TransformerConfig& config);

/// "relu", "gelu", "gelu_tanh", …: the names that flags and tables use.
std::string_view name_of(Activation activation);
std::string_view name_of(PositionKind position);
std::string_view name_of(NormKind norm);
std::string_view name_of(AttentionKind attention);

/// True for the gated linear units, whose up projection is twice as wide.
bool is_gated(Activation activation);

/// The elementwise activation of a gated unit's gate: silu of SwiGLU. One that is not gated is itself.
Activation gate_of(Activation activation);

}  // namespace zoo
