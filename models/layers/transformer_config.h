#pragma once

#include <cstdint>
#include <string>
#include <string_view>
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

/// The last three are gated linear units (Shazeer, 2020): activation(x W) * (x V).
enum class Activation { kRelu, kGelu, kGeluTanh, kSilu, kSwiGlu, kGeGlu, kReGlu };

/// kSlidingWindow: Beltagy et al. (2020). kStridedSparse: Child et al. (2019). kLinear: Katharopoulos et al.
/// (2020). kLinformer: Wang et al. (2020).
enum class AttentionKind { kFull, kSlidingWindow, kStridedSparse, kLinear, kLinformer };

/// kAllLayers: one block's weights serve every layer (ALBERT: Lan et al., 2020).
enum class Sharing { kNone, kAllLayers };

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
  std::int64_t num_decoder_layers = 0;  // of an encoder-decoder; 0: num_layers
  std::int64_t num_heads = 0;           // H
  std::int64_t num_kv_heads = 0;        // 0: as many as num_heads
  std::int64_t head_dim = 0;            // D; 0: hidden_size / num_heads
  std::int64_t intermediate_size = 0;   // F; 0: 4 * hidden_size
  std::int64_t max_positions = 0;
  std::int64_t type_vocab_size = 0;      // of BERT's segments; 0: none
  std::int64_t embedding_size = 0;       // E of a factorised embedding (ALBERT); 0: hidden_size
  std::int64_t num_labels = 2;           // of the heads that classify
  std::int64_t pad_token_id = -1;        // its embedding is not trained; -1: none
  std::vector<std::string> label_names;  // num_labels of them, or none
  ProblemType problem_type = ProblemType::kByLabels;

  NormKind norm = NormKind::kLayerNorm;
  NormPlacement norm_placement = NormPlacement::kPre;
  double layer_norm_eps = 1e-5;
  PositionKind position = PositionKind::kLearned;
  PositionCount position_count = PositionCount::kAll;
  double rope_theta = 10000.0;
  Activation activation = Activation::kGeluTanh;
  AttentionKind attention = AttentionKind::kFull;
  Sharing sharing = Sharing::kNone;
  bool tie_word_embeddings = true;

  bool attention_bias = true;     // in the projections of the attention
  bool feed_forward_bias = true;  // in the two projections of the feed-forward
  bool norm_bias = true;          // in LayerNorm

  double embedding_dropout = 0.0;
  double attention_dropout = 0.0;   // on the attention weights
  double dropout = 0.0;             // on what a sublayer adds to the residual stream
  double classifier_dropout = 0.0;  // before the projection of a head that classifies sequences
  double token_dropout = 0.0;       // the same of a head that classifies tokens
  double answer_dropout = 0.0;      // the same of question answering
  double initializer_range = 0.02;

  std::int64_t kv_heads() const { return num_kv_heads > 0 ? num_kv_heads : num_heads; }
  std::int64_t head_size() const { return head_dim > 0 ? head_dim : hidden_size / num_heads; }
  std::int64_t feed_forward_size() const {
    return intermediate_size > 0 ? intermediate_size : 4 * hidden_size;
  }

  /// The longest sequence: positions that RoBERTa's count leaves out are none.
  std::int64_t max_length() const {
    return position_count == PositionCount::kAll ? max_positions : max_positions - pad_token_id - 1;
  }
  /// The width of the embedding tables (E).
  std::int64_t embedding_width() const { return embedding_size > 0 ? embedding_size : hidden_size; }

  /// Throws c10::Error naming each field that is out of range, with its value and what it must be.
  void validate() const;
};

/// "relu", "gelu", "gelu_tanh", …: the names that flags and tables use.
std::string_view name_of(Activation activation);
std::string_view name_of(PositionKind position);
std::string_view name_of(NormKind norm);

/// True for the gated linear units, whose up projection is twice as wide.
bool is_gated(Activation activation);

}  // namespace zoo
