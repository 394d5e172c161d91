#pragma once

#include <vector>

#include "models/inference/packed_cache.h"
#include "models/inference/packed_linear.h"
#include "models/kernels/parallel.h"
#include "models/layers/stack.h"

namespace zoo::inference {

// Dimensions of a configuration as sizes of buffers.
inline std::size_t size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

struct PackOptions {
  WeightType weights = WeightType::kFloat32;
  WeightType cache = WeightType::kFloat32;  // of keys and values: kFloat32, kBfloat16 or kInt8
  bool release = false;  // leave the modules without the weights that are packed: they cannot be used again
};

/// Some tokens of one sequence among the rows of a pass.
struct SequenceRows {
  std::size_t first_row, count;
  std::size_t past = 0;    // positions that stand before them in the cache
  std::size_t slot = 0;    // of the cache
  std::size_t source = 0;  // slot of the memory, of a decoder with cross-attention
};

/// Rows [rows, C] of several sequences, one behind the other, without padding. They are replaced by what the
/// stack makes of them.
struct Pass {
  float* x;
  std::size_t rows;
  std::vector<SequenceRows> sequences;
  PackedCache* cache = nullptr;  // without one each sequence is whole, and nothing is kept
  const PackedCache* memory = nullptr;
  const std::vector<std::size_t>* memory_lengths = nullptr;  // positions of each slot of the memory
};

/// Buffers of a pass, kept from one to the next.
struct Workspace {
  Memory prepared, scales, sums, projected, attended, inner;
  std::vector<Memory> scratch, head_caches;  // for each thread
};

/// A TransformerStack that only answers, with packed weights: the same mathematics, in kernels of ours, on
/// all threads of torch::set_num_threads.
class PackedStack {
 public:
  /// Throws c10::Error for what supports() refuses.
  PackedStack(TransformerStackImpl& stack, const PackOptions& options);

  /// False for Shaw's positions, attention that is not full, and a device that is no CPU.
  static bool supports(const TransformerStackImpl& stack);

  /// All layers and the final norm.
  void run(const Pass& pass, Workspace& workspace);

  /// Keys and values of an encoder's output [rows, C], for the cross-attention of all layers.
  void remember_memory(const float* hidden, const std::vector<SequenceRows>& sources, PackedCache& memory,
                       Workspace& workspace) const;

  /// The shape of a cache, or of a memory, for so many sequences.
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
  // What the threads of one pass share, and which of them this is.
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
  // `next` is what the threads multiply with behind it, if anything.
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
  std::vector<Layer> layers_;  // one, if all share it
  PackedNorm final_norm_;
  at::Tensor position_bias_;      // T5's table
  std::vector<float> cos_, sin_;  // [positions, D / 2]
  std::vector<float> bias_;       // [H, 2 positions - 1], by key position - query position
  std::size_t positions_ = 0;     // that the tables are made for
};

}  // namespace zoo::inference
