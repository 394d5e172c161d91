#pragma once

#include <vector>

#include "models/inference/packed_cache.h"
#include "models/inference/packed_linear.h"
#include "models/kernels/parallel.h"
#include "models/layers/stack.h"

namespace zoo::inference {

// Converts a configuration's dimension to a buffer size.
inline std::size_t size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

struct PackOptions {
  WeightType weights = WeightType::kFloat32;
  WeightType cache = WeightType::kFloat32;  // of keys and values: kFloat32, kBfloat16 or kInt8
  bool release = false;  // remove packed weights from the modules, which makes them unusable
};

/// Tokens of one sequence among the rows of a pass.
struct SequenceRows {
  std::size_t first_row, count;
  std::size_t past = 0;    // positions before them in the cache
  std::size_t slot = 0;    // of the cache
  std::size_t source = 0;  // slot of the memory, for a decoder with cross-attention
};

/// Rows [rows, C] of several sequences, concatenated without padding. The stack overwrites them with its
/// output.
struct Pass {
  float* x;
  std::size_t rows;
  std::vector<SequenceRows> sequences;
  PackedCache* cache = nullptr;  // null: each sequence is whole, and nothing is kept
  const PackedCache* memory = nullptr;
  const std::vector<std::size_t>* memory_lengths = nullptr;  // positions of each slot of the memory
};

/// Buffers of a pass, reused by the next one.
struct Workspace {
  Memory prepared, scales, sums, projected, attended, inner;
  std::vector<Memory> scratch, head_caches;  // for each thread
};

/// A TransformerStack for inference with packed weights: the same mathematics in our own kernels, on all
/// threads of torch::set_num_threads.
class PackedStack {
 public:
  /// Throws c10::Error unless supports(stack).
  PackedStack(TransformerStackImpl& stack, const PackOptions& options);

  /// False for Shaw's positions, attention other than full, and devices other than a CPU.
  static bool supports(const TransformerStackImpl& stack);

  /// Runs all layers and the final norm.
  void run(const Pass& pass, Workspace& workspace);

  /// Stores keys and values of an encoder's output [rows, C], for the cross-attention of all layers.
  void append_memory(const float* hidden, const std::vector<SequenceRows>& sources, PackedCache& memory,
                       Workspace& workspace) const;

  /// Shape of a cache, or of a memory, for `slots` sequences.
  CacheShape cache_shape(std::size_t slots, std::size_t capacity) const;

  const TransformerConfig& config() const { return config_; }
  std::size_t bytes() const;

 private:
  struct PackedNorm {
    std::vector<float> weight, bias;
  };
  struct Layer {
    PackedLinear qkv, out, cross_q, cross_kv, cross_out, up, down;
    PackedNorm attention_norm, cross_norm, feed_forward_norm;
  };
  // State shared by the threads of one pass, and this thread's place among them.
  struct Run {
    const Team& team;
    const Pass& pass;
    Workspace& workspace;
    const kernels::InferenceKernels& kernels;
  };

  static PackedNorm norm_of(const Norm& norm);
  void prepare_tables(std::size_t positions);
  void reserve(const Pass& pass, Workspace& workspace) const;
  void layer(const Run& run, std::size_t index) const;
  void sublayer_norm(const Run& run, const PackedNorm& norm) const;
  // `next` is the weight that the threads multiply with afterwards, or null; it is prefetched.
  void project(const Run& run, const float* input, std::size_t input_row, const PackedNorm* norm,
               const PackedLinear& linear, float* result, bool adds,
               const PackedLinear* next = nullptr) const;
  void attend(const Run& run, std::size_t layer) const;
  void attend_to_memory(const Run& run, std::size_t layer) const;
  void attend_head(const Run& run, std::size_t layer, const SequenceRows& rows, std::size_t head) const;
  void feed_forward(const Run& run, const Layer& layer, const PackedLinear* next) const;
  kernels::PreparedRows prepare(const Run& run, const PackedLinear& next, kernels::Preparation what) const;
  kernels::Preparation normalized(const float* x, const PackedNorm& norm) const;

  TransformerConfig config_;
  PackOptions options_;
  std::vector<Layer> layers_;  // one if all layers share it
  PackedNorm final_norm_;
  at::Tensor position_bias_;      // T5's table
  std::vector<float> cos_, sin_;  // [positions, D / 2]
  std::vector<float> bias_;       // [H, 2 positions - 1], by key position - query position
  std::size_t positions_ = 0;     // length of the tables
};

}  // namespace zoo::inference
