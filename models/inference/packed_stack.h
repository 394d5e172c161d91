#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/inference/packed_cache.h"
#include "models/inference/packed_linear.h"
#include "models/inference/packed_positions.h"
#include "models/kernels/parallel.h"
#include "models/layers/stack.h"

namespace zoo::inference {

inline std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

/// Low-rank terms of a stack's weights (LoRA: Hu et al., 2022), in float32 whatever the weights are. A pass
/// adds them to the products of the sequences that have them, W x + B (A x), so that sequences with different
/// adapters, and without, share each pass over the packed weights.
struct PackedAdapter {
  struct Term {
    PackedLinear a, b;  // [r, in]; [out, r] times the scale
  };
  std::map<const PackedLinear*, Term> terms;  // by the stack's weight
  std::size_t rank = 0;                       // the largest
};

/// Tokens of one sequence among the rows of a pass.
struct SequenceRows {
  std::size_t first_row, count;
  std::size_t past = 0;    // positions before them in the cache
  std::size_t slot = 0;    // of the cache
  std::size_t source = 0;  // slot of the memory, for a decoder with cross-attention
  /// Positions of the sequence after all present tokens, which may take several passes; 0: after this one.
  std::size_t length = 0;
  const PackedAdapter* adapter = nullptr;

  std::size_t end() const { return past + count; }
  std::size_t final_length() const { return std::max(length, end()); }
};

/// Rows [rows, C] of several sequences, without padding. The stack overwrites them with its output.
struct Pass {
  float* x;
  std::size_t rows;
  std::vector<SequenceRows> sequences;
  PackedCache* cache = nullptr;  // null: sequences are complete and need no cache
  const PackedCache* memory = nullptr;
  const std::vector<std::size_t>* memory_lengths = nullptr;  // positions of each slot of the memory
};

/// Buffers of a pass, reused by the next one.
struct Workspace {
  Memory prepared, scales, sums, projected, attended, inner, branch;
  // For experts: normalised rows, the router's probabilities, each token's choices, the choices sorted by
  // expert (rows and results), the start of each expert's, and the output of the shared expert.
  Memory normed, probabilities, choices, gathered, expert_outputs, shared_output;
  std::vector<std::size_t> expert_begins;
  std::vector<Memory> scratch, head_caches, pair_scores;  // for each thread
  // Inputs of an adapted product in float32, and A x of each row: adapter_rank numbers.
  Memory adapted, adapted_inner;
  std::size_t adapter_rank = 0;  // 0: no sequence of the pass has an adapter

  /// Makes room for so many rows of inputs, of at most `widest` numbers, in the type of any weight.
  void reserve_inputs(std::size_t rows, std::size_t widest);
};

/// A TransformerStack for inference with packed weights: the same mathematics in our own kernels, on all
/// threads of torch::set_num_threads. Idea: one team of threads runs the complete pass, with a barrier after
/// each step; while a thread waits, it prefetches the next weight.
class PackedStack {
 public:
  /// A stack of a model without lacking_kernels().
  PackedStack(TransformerStackImpl& stack, const PackOptions& options);

  /// Features of the configuration that the kernels lack (see missing_features).
  static std::vector<std::string> missing(const TransformerConfig& config);

  /// The terms of these weights, by their names in the model, for SequenceRows::adapter. Throws Error naming
  /// one that no layer has, such as an expert's.
  std::shared_ptr<const PackedAdapter> adapter(const std::map<std::string, LowRankTerm>& terms) const;

  void run(const Pass& pass, Workspace& workspace);

  /// Multiplies hidden states [rows, C] with a head's weight: result [rows, outputs].
  void project_head(const float* hidden, std::size_t rows, const PackedLinear& head, float* result,
                    Workspace& workspace) const;

  /// Stores keys and values of a pass' rows, an encoder's output, for the cross-attention of all layers.
  void append_memory(const Pass& pass, PackedCache& memory, Workspace& workspace) const;

  /// Shape of a cache, or of a memory, for `slots` sequences.
  CacheShape cache_shape(std::size_t slots, std::size_t capacity) const;

  const TransformerConfig& config() const { return config_; }
  std::size_t bytes() const;

 private:
  struct PackedNorm {
    std::vector<float> weight, bias;

    bool empty() const { return weight.empty(); }
  };
  // Norms of a sublayer: of its input, of its result before the residual sum, of that sum. Each may be empty.
  struct SublayerNorms {
    PackedNorm before, branch_end, after;
  };
  // A mixture of experts. The router stays float32: rounding it would send tokens to other experts.
  struct PackedExperts {
    PackedLinear router;
    std::vector<PackedLinear> up, down;  // of each expert
    PackedLinear shared_up, shared_down, shared_gate;

    bool empty() const { return up.empty(); }
  };
  struct Layer {
    PackedLinear qkv, out, cross_q, cross_kv, cross_out, up, down;
    PackedExperts experts;  // instead of up and down
    SublayerNorms attention_norms, cross_norms, feed_forward_norms;
    PackedNorm query_norm, key_norm;
    std::vector<PackedLinear> distance_queries, distance_keys;  // [2 k, D] of each head; only kDisentangled
  };
  // State shared by the threads of one pass, and this thread's part of it.
  struct Run {
    const Team& team;
    const Pass& pass;
    Workspace& workspace;
    const kernels::InferenceKernels& kernels;
  };

  struct Network {
    const PackedLinear &up, &down;
    const float* input;
    const PackedNorm& norm;
  };
  // One of a token's experts: its index among the choices sorted by expert, and the weight of its output.
  struct Choice {
    std::uint32_t expert;
    float weight;
    std::size_t place;
  };

  PackedNorm norm_of(const Norm& norm) const;
  SublayerNorms sublayer_norms(const Norm& norm, const Norm& end_norm) const;
  void reserve(const Pass& pass, Workspace& workspace) const;
  void layer(const Run& run, std::size_t index) const;
  // Normalises the first numbers of each row; rows are `row` elements apart.
  void normalize(const Run& run, float* rows, std::size_t row, const PackedNorm& norm) const;
  void normalize_rows(const kernels::InferenceKernels& kernels, float* rows, std::size_t row,
                      std::size_t first, std::size_t last, const PackedNorm& norm) const;
  // These write a sublayer's result to `result`: x, to which they add it, or the workspace's branch.
  void attention(const Run& run, std::size_t index, float* result) const;
  void feed_forward(const Run& run, const Network& network, float* result, const PackedLinear* next) const;
  static PackedExperts pack_experts(ExpertsImpl& experts, const PackOptions& options);
  void reserve_experts(std::size_t rows, Workspace& workspace) const;
  void mix_experts(const Run& run, const Layer& layer, float* result) const;
  void route(const Run& run, const PackedExperts& experts) const;
  void sort_choices(const Run& run) const;
  void run_experts(const Run& run, const PackedExperts& experts) const;
  void run_shared(const Run& run, const PackedExperts& experts) const;
  // Adds a branch to x after its norm, and applies the norm of the sum.
  void finish(const Run& run, const SublayerNorms& norms, float* result) const;
  void add_branch(const Run& run, const PackedNorm& norm) const;
  // `next`, the weight of the following product or null, is prefetched.
  void project(const Run& run, const float* input, const PackedNorm& norm, const PackedLinear& linear,
               float* result, bool adds, const PackedLinear* next = nullptr) const;
  // The product of `linear` with the rows that were prepared from `input`, with the sequences' adapters.
  void multiply(const Run& run, const PackedLinear& linear, kernels::PackedProduct product,
                const kernels::Preparation& input, const PackedLinear* next) const;
  void add_terms(const Run& run, const PackedLinear& linear, const kernels::PackedProduct& product,
                 const kernels::Preparation& input, Team::Part outputs) const;
  void attend(const Run& run, std::size_t layer) const;
  void attend_to_memory(const Run& run, std::size_t layer) const;
  void pack_distances(TransformerStackImpl& stack);
  const float* distance_scores(const Run& run, const Layer& layer, std::size_t head,
                               const SequenceRows& rows) const;
  kernels::HeadCache head_cache(const Run& run, std::size_t layer, const SequenceRows& rows,
                                std::size_t head) const;
  void append_head(const Run& run, std::size_t layer, const SequenceRows& rows, std::size_t head) const;
  void attend_heads(const Run& run, std::size_t layer, const SequenceRows& rows,
                    Team::Part query_heads) const;
  kernels::PreparedRows prepare(const Run& run, const PackedLinear& next, kernels::Preparation what,
                                std::size_t rows) const;
  kernels::Preparation normalized(const float* x, const PackedNorm& norm, std::size_t width) const;

  TransformerConfig config_;
  const std::size_t width_ = size(config_.hidden_size), head_dim_ = size(config_.head_size()),
                    heads_ = size(config_.num_heads), kv_heads_ = size(config_.kv_heads());
  PackOptions options_;
  std::vector<Layer> layers_;  // one if all layers share it
  PackedNorm final_norm_;
  PackedPositions positions_;
};

}  // namespace zoo::inference
