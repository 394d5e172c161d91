#pragma once

/// @file
/// Use:
///
///     zoo::TransformerConfig config{.vocab_size = 65, .hidden_size = 128, .num_layers = 4, .num_heads = 4};
///     config.max_positions = 256;
///     config.norm = zoo::NormKind::kRmsNorm;
///     config.validate();

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/ops/activation.h"
#include "models/ops/norm.h"

namespace zoo {

/// Stacks of Vaswani et al. (2017) that a model has.
enum class Shape { kEncoder, kDecoder, kEncoderDecoder };

/// Position of a sublayer's norms. kPre and kPost (pre-LN, post-LN: Xiong et al., 2020): x + f(norm(x)) and
/// norm(x + f(x)). kSandwich (Ding et al., 2021): x + norm(f(norm(x))). kBranchEnd (res-post-norm: Liu et
/// al., 2022): x + norm(f(x)).
enum class NormPlacement { kPre, kPost, kSandwich, kBranchEnd };

/// Order of a block's sublayers. kSequential: Vaswani et al. (2017). kParallel (Wang and Komatsuzaki, 2021):
/// x + attention(norm(x)) + feed_forward(norm(x)), each with its own norm. kParallelOneNorm: the same norm
/// for both.
enum class SublayerOrder { kSequential, kParallel, kParallelOneNorm };

/// Sublayers whose outputs training drops before the residual sum. kAll: Vaswani et al. (2017). kFeedForward
/// and kAttention: these alone, as transformers does in DistilBERT (Sanh et al., 2019) and ALBERT (Lan et
/// al., 2020).
enum class DroppedOutputs { kAll, kFeedForward, kAttention };

/// RMSNorm of queries and keys before their product (Henry et al., 2020), with learned weights. kPerHead:
/// over each head's D numbers; all heads share the weights. kWhole: over all heads of a token together.
enum class QueryKeyNorm { kNone, kPerHead, kWhole };

/// kSinusoidal: Vaswani et al. (2017). kLearned: a table. kShaw: Shaw et al. (2018). kT5Buckets: Raffel et
/// al. (2020). kRotary: Su et al. (2021), over the head dimension. kAlibi: Press et al. (2022).
/// kLearnedAndT5Buckets: a table beside T5's buckets (MPNet: Song et al., 2020). kDisentangled: He et al.
/// (2021).
enum class PositionKind {
  kNone,
  kSinusoidal,
  kLearned,
  kShaw,
  kT5Buckets,
  kRotary,
  kAlibi,
  kLearnedAndT5Buckets,
  kDisentangled
};

/// Tables of T5's position bias. kOneForAll: the layers of a stack share one (T5). kPerLayer: each layer has
/// its own (UMT5: Chung et al., 2023).
enum class BucketTables { kOneForAll, kPerLayer };

/// Scaling of rotary frequencies for contexts longer than in training. kLinear divides all frequencies by the
/// factor (Chen et al., 2023). kLlama3 divides only the low ones, with a smooth transition (Dubey et al.,
/// 2024). kYarn does so with a transition that is linear in the pair's index, and scales the rotated numbers
/// (Peng et al., 2023). kDynamic raises the base by as much as a sequence is longer than the original context
/// (NTK-aware scaling). kLongRope divides each frequency by a factor of its own, one within the original
/// context and another beyond it, and scales the rotated numbers (Ding et al., 2024).
enum class RopeScalingKind { kNone, kLinear, kLlama3, kYarn, kDynamic, kLongRope };

struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::kNone;
  double factor = 1.0;
  // kLlama3 only: divides frequencies whose wavelength is above original_max_positions / low_frequency_factor
  // and keeps those whose wavelength is below original_max_positions / high_frequency_factor.
  double low_frequency_factor = 1.0;
  double high_frequency_factor = 4.0;
  std::int64_t original_max_positions = 8192;  // all but kLinear
  // kYarn only: rotations within the original context above beta_fast are kept, below beta_slow divided.
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  double attention_factor = 1.0;  // of cosines and sines; kLongRope too
  bool truncate = true;           // rounds the bounds of the transition to whole pairs
  // kLongRope only: for each pair, in sequences within the original context and in longer ones.
  std::vector<double> short_factors, long_factors;

  /// True if a sequence's length decides how its tokens rotate.
  bool depends_on_length() const {
    return kind == RopeScalingKind::kDynamic || kind == RopeScalingKind::kLongRope;
  }
};

/// Weights of the outputs of a token's experts. kOfAll: their share of a softmax over all experts (Fedus et
/// al., 2022). kOfChosen: softmax over the chosen ones, which sums to 1 (Jiang et al., 2024).
enum class ExpertWeights { kOfAll, kOfChosen };

/// kSlidingWindow: Beltagy et al. (2020). kStridedSparse: Child et al. (2019). kLinear: Katharopoulos et al.
/// (2020). kLinformer: Wang et al. (2020).
enum class AttentionKind { kFull, kSlidingWindow, kStridedSparse, kLinear, kLinformer };

/// kAllLayers: all layers share the weights of one block (ALBERT: Lan et al., 2020).
enum class Sharing { kNone, kAllLayers };

/// Distribution of newly initialised weights. kNormal: normal(0, initializer_range) (BERT). kScaledResiduals:
/// the same, with projections that end a residual branch divided by sqrt(2 * num_layers) (GPT-2: Radford et
/// al., 2019, section 2.3). kByWidth: normal(0, initializer_range / sqrt(input width)), which compensates for
/// unscaled attention scores (T5). kZeroResiduals: as kNormal, with zeros in the projections that end a
/// residual branch, so that each block begins as the identity (nanochat).
enum class InitialWeights { kNormal, kScaledResiduals, kByWidth, kZeroResiduals };

/// Tokens that learned positions count. kAll: every token, from 0. kNotPadding: all except pad_token_id, from
/// pad_token_id + 1; padding gets position pad_token_id (RoBERTa: Liu et al., 2019). kNotMasked: those that
/// the attention mask keeps (OPT: Zhang et al., 2022).
enum class PositionCount { kAll, kNotPadding, kNotMasked };

/// Order of a sinusoidal table's columns. kInterleaved: sine and cosine of each frequency side by side
/// (Vaswani et al., 2017). kHalves: all sines, then all cosines (Marian: Junczys-Dowmunt et al., 2018).
/// kFairseq: the same, with frequencies whose last is 1 / 10000 (fairseq: Ott et al., 2019).
enum class SinusoidOrder { kInterleaved, kHalves, kFairseq };

/// First token of a decoder whose ids are the labels shifted right. kStartToken: decoder_start_token_id.
/// kLastLabel: each row's last label that is not padding, a language's id (mBART: Liu et al., 2020).
enum class ShiftedLabels { kStartToken, kLastLabel };

/// Hidden states from which an encoder's classifier reads a sequence. kFirst: that of its first token. kMean:
/// the mean of those that the attention mask keeps.
enum class SentencePooling { kFirst, kMean };

/// Type of a sequence classifier's labels; it selects the loss. kByLabels: one label means regression,
/// integers mean classes, rows of numbers mean multi-label.
enum class ProblemType { kByLabels, kRegression, kSingleLabel, kMultiLabel };

/// All hyperparameters of a transformer. A family reads them from its config.json.
struct TransformerConfig {
  Shape shape = Shape::kDecoder;

  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;  // C
  std::int64_t num_layers = 0;
  std::int64_t num_decoder_layers = 0;  // of an encoder-decoder, whose encoder has num_layers; 0: num_layers
  std::int64_t num_heads = 0;           // H
  std::int64_t num_kv_heads = 0;        // 0: as many as num_heads
  std::int64_t head_dim = 0;            // D; 0: hidden_size / num_heads
  std::int64_t intermediate_size = 0;   // F; 0: 4 * hidden_size
  std::int64_t max_positions = 0;
  std::int64_t type_vocab_size = 0;      // BERT's segment types; 0: none
  std::int64_t embedding_size = 0;       // E of a factorised embedding (ALBERT); 0: hidden_size
  std::int64_t num_labels = 2;           // of classification heads
  std::int64_t pad_token_id = -1;        // -1: none
  std::int64_t eos_token_id = -1;        // whose last one an encoder-decoder's classifier reads; -1: none
  std::vector<std::string> label_names;  // num_labels names, or empty
  ProblemType problem_type = ProblemType::kByLabels;
  SentencePooling sentence_pooling = SentencePooling::kFirst;
  bool trains_padding = true;                // trains the embedding of pad_token_id
  std::int64_t decoder_start_token_id = -1;  // first token of an encoder-decoder's decoder; -1: none
  ShiftedLabels shifted_labels = ShiftedLabels::kStartToken;

  NormKind norm = NormKind::kLayerNorm;
  NormPlacement norm_placement = NormPlacement::kPre;
  bool first_attention_norm = true;  // false: no norm before the first layer's attention (ModernBERT)
  SublayerOrder sublayer_order = SublayerOrder::kSequential;
  double layer_norm_eps = 1e-5;
  PositionKind position = PositionKind::kLearned;
  PositionCount position_count = PositionCount::kAll;
  std::int64_t position_offset = 0;  // unused rows before the first position of a table
  SinusoidOrder sinusoid_order = SinusoidOrder::kInterleaved;
  double rope_theta = 10000.0;
  RopeScaling rope_scaling;
  std::int64_t rotary_dim = 0;      // dimensions of a head that rotate, its first ones; 0: all
  double window_rope_theta = 0.0;   // base of layers with a window, without scaling; 0: as the others
  std::vector<bool> rotary_layers;  // whether each layer rotates (NoPE: Kazemnejad et al., 2023); empty: all
  std::int64_t relative_buckets = 32;        // of T5's position bias; kDisentangled: k of 2 k vectors
  std::int64_t relative_max_distance = 128;  // from it on, one bucket; Shaw: distances are clipped to it
  BucketTables bucket_tables = BucketTables::kOneForAll;
  Activation activation = Activation::kGeluTanh;
  // Mixture of experts (Shazeer et al., 2017): a router sends each token to experts_per_token of num_experts
  // feed-forward networks without biases.
  std::int64_t num_experts = 0;        // 0: none
  std::int64_t experts_per_token = 2;  // k
  std::int64_t expert_size = 0;        // F of an expert; 0: feed_forward_size()
  std::vector<bool> expert_layers;     // whether each layer has experts instead of one network; empty: all
  ExpertWeights expert_weights = ExpertWeights::kOfChosen;
  std::int64_t shared_expert_size = 0;  // F of an expert that reads every token, through a gate; 0: none
  bool router_loss = false;             // a language model's training balances the experts (router_loss())
  double router_loss_weight = 0.001;    // of that loss
  AttentionKind attention = AttentionKind::kFull;
  std::int64_t sparse_window = 0;  // kSlidingWindow: keys seen on each side; kStridedSparse: its stride
  std::int64_t attention_projection = 0;  // kLinformer: length that keys and values are projected to
  // kFull: a query of a layer with a window sees this many keys, the last of which is its own (Mistral: Jiang
  // et al., 2023); in an encoder half as many on each side and its own (ModernBERT: Warner et al., 2024). 0:
  // all.
  std::int64_t sliding_window = 0;
  std::vector<bool> window_layers;  // whether each layer has the window; empty: all
  QueryKeyNorm query_key_norm = QueryKeyNorm::kNone;
  double attention_scale = 0.0;    // factor of the scores; 0: 1 / sqrt(D), of kDisentangled 1 / sqrt(3 D)
  double attention_softcap = 0.0;  // c of scores c tanh(s / c) (Gemma 2: Riviere et al., 2024); 0: none
  bool cross_attention = false;    // decoder blocks also attend to a memory
  Sharing sharing = Sharing::kNone;
  bool tie_word_embeddings = true;
  bool tie_prediction_bias = false;  // an untied masked-lm projection has no bias but the head's
  double embedding_scale = 1.0;      // factor of the token embedding; 0: sqrt(C)
  double residual_scale = 1.0;       // factor of a sublayer's output before the residual sum (Granite)
  double logits_scale = 1.0;  // factor of the hidden state before the output projection; 0: 1 / sqrt(C) (T5)
  double logits_softcap = 0.0;  // c of logits c tanh(l / c); 0: none
  bool output_bias = false;     // a buffer beside the output projection, a bias of the logits (BART)
  bool lm_head_bias = false;    // a decoder's untied output projection has a bias (GPT-J)

  bool qkv_bias = true;               // of the query, key and value projections
  bool attention_output_bias = true;  // of the attention output projection
  bool feed_forward_bias = true;      // of both feed-forward projections
  bool norm_bias = true;              // of LayerNorm
  bool embedding_norm = false;        // normalises the sum of embeddings (BERT)

  double embedding_dropout = 0.0;
  double attention_dropout = 0.0;      // on the attention weights
  double activation_dropout = 0.0;     // inside the feed-forward network
  double dropout = 0.0;                // on a sublayer's output, before the residual sum
  double final_dropout = 0.0;          // after the final norm
  double layer_dropout = 0.0;          // probability of leaving a layer out (LayerDrop: Fan et al., 2020)
  double decoder_layer_dropout = 0.0;  // the same in an encoder-decoder's decoder
  double classifier_dropout = 0.0;     // before the projection of a sequence classification head
  double token_dropout = 0.0;          // the same for token classification
  double answer_dropout = 0.0;         // the same for question answering
  double initializer_range = 0.02;
  DroppedOutputs dropped_outputs = DroppedOutputs::kAll;  // sublayers with `dropout`
  InitialWeights initial_weights = InitialWeights::kScaledResiduals;

  std::int64_t kv_heads() const { return num_kv_heads > 0 ? num_kv_heads : num_heads; }
  std::int64_t head_size() const {
    if (head_dim > 0) return head_dim;
    return num_heads > 0 ? hidden_size / num_heads : 0;  // validate() asks before it knows
  }
  /// Rows of queries, keys and values in the weight that holds all three.
  std::vector<std::int64_t> query_key_value_rows() const {
    const std::int64_t kv_rows = kv_heads() * head_size();
    return {num_heads * head_size(), kv_rows, kv_rows};
  }
  std::int64_t feed_forward_size() const {
    return intermediate_size > 0 ? intermediate_size : 4 * hidden_size;
  }

  std::int64_t expert_width() const { return expert_size > 0 ? expert_size : feed_forward_size(); }
  bool has_experts(std::int64_t layer) const {
    return num_experts > 0 && (expert_layers.empty() || expert_layers[static_cast<std::size_t>(layer)]);
  }

  /// Dropout of a sublayer's output: attention, or feed-forward network or experts.
  double attention_output_dropout() const {
    return dropped_outputs == DroppedOutputs::kFeedForward ? 0.0 : dropout;
  }
  double feed_forward_output_dropout() const {
    return dropped_outputs == DroppedOutputs::kAttention ? 0.0 : dropout;
  }

  double score_scale() const {
    if (attention_scale != 0) return attention_scale;
    const int terms = position == PositionKind::kDisentangled ? 3 : 1;  // of a score
    return 1.0 / std::sqrt(static_cast<double>(terms * head_size()));
  }
  double output_scale() const {
    return logits_scale != 0 ? logits_scale : 1.0 / std::sqrt(static_cast<double>(hidden_size));
  }
  double token_scale() const {
    return embedding_scale != 0 ? embedding_scale : std::sqrt(static_cast<double>(hidden_size));
  }
  /// True if positions come from a table, which limits sequences to max_length() tokens.
  bool has_position_table() const { return has_learned_positions() || position == PositionKind::kSinusoidal; }
  /// True if tokens can be given positions: elsewhere the order of the tokens alone counts, or nothing does.
  bool takes_positions() const { return has_position_table() || position == PositionKind::kRotary; }
  bool has_learned_positions() const {
    return position == PositionKind::kLearned || position == PositionKind::kLearnedAndT5Buckets;
  }
  bool has_t5_buckets() const {
    return position == PositionKind::kT5Buckets || position == PositionKind::kLearnedAndT5Buckets;
  }
  /// True if the scores get a bias for each pair of positions.
  bool has_position_bias() const { return has_t5_buckets() || position == PositionKind::kAlibi; }

  bool has_window(std::int64_t layer) const {
    return sliding_window > 0 && (window_layers.empty() || window_layers[static_cast<std::size_t>(layer)]);
  }
  bool rotates(std::int64_t layer) const {
    return position == PositionKind::kRotary &&
           (rotary_layers.empty() || rotary_layers[static_cast<std::size_t>(layer)]);
  }
  /// Dimensions of a head that rotary positions turn.
  std::int64_t rotary_size() const { return rotary_dim > 0 ? rotary_dim : head_size(); }
  bool has_final_norm() const { return norm_placement != NormPlacement::kPost; }

  std::int64_t decoder_layers() const { return num_decoder_layers > 0 ? num_decoder_layers : num_layers; }

  /// Configurations of an encoder-decoder's two stacks.
  TransformerConfig encoder_part() const;
  TransformerConfig decoder_part() const;

  /// Row of position 0 in a table of positions.
  std::int64_t first_position() const {
    return position_count == PositionCount::kNotPadding ? pad_token_id + 1 : position_offset;
  }
  /// Maximum sequence length. RoBERTa's max_positions counts the rows before its first position too.
  std::int64_t max_length() const {
    const bool counts_rows = position_count == PositionCount::kNotPadding && has_learned_positions();
    return counts_rows ? max_positions - first_position() : max_positions;
  }
  /// Width E of the embedding tables.
  std::int64_t embedding_width() const { return embedding_size > 0 ? embedding_size : hidden_size; }

  /// The same model, with every 0 that stands for a value that follows from other fields replaced by that
  /// value.
  TransformerConfig resolved() const;

  /// Throws c10::Error naming each field that is out of range, with its value and what it must be.
  void validate() const;
};

/// Name and value of every field of the resolved configuration: equal models have equal fields.
std::vector<std::pair<std::string_view, std::string>> fields_of(const TransformerConfig& config);

/// "rotary", "rms_norm", "sliding_window", …: the names that messages and tables use.
std::string_view name_of(PositionKind position);
std::string_view name_of(NormKind norm);
std::string_view name_of(AttentionKind attention);
std::string_view name_of(RopeScalingKind scaling);

}  // namespace zoo
