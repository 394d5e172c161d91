#pragma once

#include <cstddef>
#include <cstdint>

#include "models/kernels/packed/packed_weight.h"
#include "models/kernels/pointwise.h"

// Kernels of inference: products with packed weights, the steps between them, and attention over a KV cache.
// Compiled for several instruction sets; inference_kernels() chooses at run time. No kernel allocates, throws
// or starts a thread.
namespace zoo::kernels {

/// Rows of activations, prepared for a product with a weight of this type: float32; bfloat16, stored as
/// float32 if no instruction multiplies pairs (InferenceKernels::bfloat16_bytes); or int8 with scales and
/// sums, one of each per kByteGroup inputs (kInt8), or a scale per group and a sum per kRun inputs (kInt4,
/// kBlocks). Scales are per group because a few inputs of trained models are a hundred times the others and
/// would cost these their precision. Rows are zero-padded to a multiple of kGroup inputs, except in float32.
struct PreparedRows {
  WeightType type = WeightType::kFloat32;
  std::byte* data = nullptr;
  std::size_t row_bytes = 0;
  float* scales = nullptr;
  std::int32_t* sums = nullptr;
};

/// Numbers of scales and of sums of a row.
std::size_t scales_in_row(WeightType type, std::size_t inputs);
std::size_t sums_in_row(WeightType type, std::size_t inputs);

enum class Normalization { kNone, kLayer, kRms };

/// Rows [width] of float32 that are normalised, gated (f(x[k]) x[width + k], from rows twice as wide), or
/// neither, and written as `type`.
struct Preparation {
  const float* input;
  std::size_t input_row;  // elements between rows
  std::size_t width;
  Normalization norm = Normalization::kNone;
  const float* norm_weight = nullptr;
  const float* norm_bias = nullptr;  // may be absent
  float norm_eps = 0;
  Pointwise gate = Pointwise::kNone;
};

/// result = f(rows weight^T + bias), or result += that with kNone for f. The order of summation
/// depends neither on the number of threads nor on that of rows.
struct PackedProduct {
  const PackedWeight* weight;
  PreparedRows rows;
  std::size_t row_count;
  float* result;
  std::size_t result_row;
  const float* bias = nullptr;  // [outputs]
  bool adds = false;
  Pointwise pointwise = Pointwise::kNone;
};

/// Keys and values of one head. With kFloat32 or kBfloat16, they have the layout of packed weights. Keys:
/// panels of kPanelOutputs positions whose inputs are the head's dimensions. Values: one panel of
/// D outputs, rounded up to a multiple of 16, whose inputs are the positions.
///
/// With kInt8, each key and each value has a scale, x = scale q with q in [-127, 127]. Both are panels of
/// kPanelOutputs positions: for each dimension the bytes of its positions (keys), or for each position those
/// of as many dimensions as above (values), then the positions' scales in float32.
struct HeadCache {
  std::byte *keys, *values;
};

/// Bytes of a head's keys (or values) for `capacity` positions, a multiple of kPanelOutputs.
std::size_t key_bytes(WeightType type, std::size_t head_dim, std::size_t capacity);
std::size_t value_bytes(WeightType type, std::size_t head_dim, std::size_t capacity);

/// Attention of the queries of one head, or of heads that share their keys, to the positions of its cache.
struct Attention {
  WeightType type;
  HeadCache cache;
  std::size_t head_dim;
  const float* queries;
  std::size_t query_row, query_count;
  std::size_t visible;     // query 0 sees the positions before this
  std::size_t growth = 0;  // each further query sees this many more
  std::size_t window = 0;  // only the last `window` of them; 0: all
  std::size_t limit = 0;   // no query sees positions from this one on; 0: no limit
  float scale = 1;
  float softcap = 0;            // c of scores c tanh(s / c), before the bias; 0: none
  const float* bias = nullptr;  // query i adds bias[i * bias_row + position] to its scores
  std::ptrdiff_t bias_row = 0;
  float* result;
  std::size_t result_row;
  std::byte* scratch;  // attention_scratch_bytes() for the last query's positions, 64-byte aligned
};

std::size_t attention_scratch_bytes(std::size_t head_dim, std::size_t positions);

/// Rotates pairs (x[i], x[i + P]) of each head, i < P, by the angle of their position (layers/positions.h:
/// RotaryTable).
struct Rotation {
  float* rows;  // heads side by side
  std::size_t head_dim, heads;
  std::size_t pairs;  // P, at most head_dim / 2
  const float* cos;   // [P] of the row's position
  const float* sin;
};

struct InferenceKernels {
  std::size_t bfloat16_bytes;  // of a number in a row prepared as kBfloat16: 2 or 4

  /// Of a prepared row.
  std::size_t row_bytes(WeightType type, std::size_t inputs) const;

  void (*prepare)(const Preparation&, const PreparedRows&, std::size_t first_row, std::size_t last_row);
  /// Computes columns [first, last) of the result, both multiples of 16 except at the end.
  void (*multiply)(const PackedProduct&, std::size_t first, std::size_t last);
  /// Stores the key and the value [head_dim] of a position.
  void (*append)(WeightType, const HeadCache&, std::size_t head_dim, std::size_t position, const float* key,
                 const float* value);
  void (*attend)(const Attention&);
  void (*rotate)(const Rotation&);
  /// x[k] = f(x[k]) of `count` numbers.
  void (*apply)(Pointwise f, float* x, std::size_t count);

  // The machine's limits, for benchmarks.
  /// Multiplies and adds float32 in registers, at the rate of the units. Returns the number of operations (a
  /// multiplication and an addition are two); `result` has room for 16 numbers.
  double (*multiply_add)(std::size_t rounds, float* result);
  /// Reads these bytes, a multiple of 256, at the rate of the memory or cache that holds them. Returns a sum
  /// that depends on each.
  std::uint64_t (*read_words)(const std::byte* data, std::size_t bytes);
};

enum class InstructionSet;  // models/kernels/cpu.h

/// Kernels of the instruction set in use. Throws as instruction_set() does: call it before threads start.
const InferenceKernels& inference_kernels();

/// Kernels of this instruction set; nullptr if it is above the one in use or does not run.
const InferenceKernels* find_inference_kernels(InstructionSet set);

}  // namespace zoo::kernels
