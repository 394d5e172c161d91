#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace zoo::kernels {

/// The upper half of a float32, rounded to the nearest, ties to even; NaN stays NaN.
__attribute__((always_inline)) inline std::uint16_t to_bfloat16(float value) {
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<std::uint16_t>(bits >> 16 | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}

__attribute__((always_inline)) inline float from_bfloat16(std::uint16_t half) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(half) << 16);
}

/// Storage (quantization) of a packed weight.
///   kFloat32, kBfloat16   not quantized
///   kInt8                 a scale for each output: w = scale (q - 128), q in [1, 255]
///   kInt4                 a scale and a zero point for kGroup inputs of an output: w = scale (q - zero), q
///                         and zero in [0, 15]; 4.5 bits per weight
///   kBlocks               as in a quantized file: each panel has its own format (BlockFormat)
enum class WeightType { kFloat32, kBfloat16, kInt8, kInt4, kBlocks };

/// Formats of a panel of kBlocks, which hold the types of GGUF. Scales and minimums are float16.
///   kNibbles         w = scale (q - 8), q in [0, 15], a scale for kGroup inputs: Q4_0; 4.5 bits a weight
///   kNibblesMinimum  w = scale q - minimum, q in [0, 15], both for kGroup inputs: Q4_1, Q4_K; 5 bits
///   kFiveBits        w = scale q - minimum, q in [0, 31], both for kGroup inputs: Q5_0, Q5_1, Q5_K; 6 bits
///   kSixBits         w = scale (q - 32), q in [0, 63], a scale for kRun inputs: Q6_K; 7 bits
///   kBytes           w = scale (q - 128), q in [0, 255], a scale for kGroup inputs: Q8_0; 8.5 bits
///   kRuns            w = scale q - minimum, q in [0, 255], both for kRun inputs: each type; 10 bits
enum class BlockFormat : std::uint8_t { kNibbles, kNibblesMinimum, kFiveBits, kSixBits, kBytes, kRuns };

/// Outputs of a panel, inputs of a group. kByteGroup: activations that share a scale with kInt8 weights.
constexpr std::size_t kPanelOutputs = 64, kGroup = 32, kRun = 16, kByteGroup = 64;

/// Bytes of a group of an int4 panel: numbers, then steps.
constexpr std::size_t kGroupBytes = kPanelOutputs * (kGroup / 2 + sizeof(std::uint16_t));

/// A panel of kBlocks: a row of groups, each with numbers as in int4 or int8, then kPanelOutputs scales,
/// then, if the format has them, as many minimums. Numbers of five and six bits have the low four as in int4,
/// then a word for each output whose byte j has the high bits of inputs j, 4 + j, 8 + j and so on, from its
/// lowest on.
struct BlockPanel {
  BlockFormat format;
  const std::byte* data;
};

/// A weight [outputs, inputs] in the order in which a product loads it, so that memory is read once and in
/// sequence: consecutive panels of kPanelOutputs outputs. For each word of inputs (32 bits: 1 float, 2
/// bfloat16, 4 int8), a panel holds the words of its outputs side by side, zero-padded past the last input
/// and output. An int4 panel is a row of groups: kGroup / 8 words for each output, whose byte j holds input 8
/// w + j in its low half and 8 w + 4 + j in its high half, then the 16-bit steps of kPanelOutputs outputs:
/// the scale, which is never negative, with 8 bits of exponent and 4 of mantissa, above the zero point.
struct PackedWeight {
  WeightType type = WeightType::kFloat32;
  std::size_t outputs = 0, inputs = 0;
  const std::byte* panels = nullptr;
  const float* scales = nullptr;       // int8 only, one per output of all panels
  const BlockPanel* blocks = nullptr;  // for each panel; panels are contiguous; kBlocks only
};

/// Not for kBlocks.
std::size_t panel_bytes(WeightType type, std::size_t inputs);
std::size_t panel_bytes(BlockFormat format, std::size_t inputs);

/// The bytes of panels [first, last).
std::span<const std::byte> panels_of(const PackedWeight& weight, std::size_t first, std::size_t last);

/// Number of panels for `outputs` outputs.
std::size_t panel_count(std::size_t outputs);

/// Writes a panel of `count` outputs whose rows begin at `rows`; element k of row j is at rows[j * row + k *
/// column]. Only int8 writes `scales` [kPanelOutputs].
struct PanelSource {
  const float* rows;
  std::size_t row, column;
  std::size_t count, inputs;
};
/// Every instruction set writes the same bits. Throws as instruction_set() does.
void pack_panel(WeightType type, const PanelSource& source, std::byte* panel, float* scales);

/// Weights of an int4 panel with error feedback (GPTQ: Frantar et al., 2023): inputs are rounded in order,
/// and later inputs are corrected for the error of each.
struct FeedbackSource {
  float* weights;  // [inputs, kPanelOutputs], zero past the last output; overwritten
  std::size_t inputs;
  const float* feedback;    // [inputs, inputs]: element (k, i) is the share of input i's error added to k > i
  const float* importance;  // [inputs]: weights of squared errors in the choice of scales
};
void pack_int4_panel(const FeedbackSource& source, std::byte* panel);

/// Rows of blocks, `count` of at most kPanelOutputs: w = scale q - minimum, with numbers q [count, inputs],
/// scales and minimums [count, inputs / kRun]. `inputs` is a multiple of kGroup.
struct BlockSource {
  const std::uint8_t* numbers;
  const float *scales, *minimums;
  std::size_t count, inputs;
};
/// Does not change the numbers. Rounds scales and minimums to float16, which changes those of Q4_K, Q5_K and
/// Q6_K by at most 2^-12 of their value. False if float16 cannot hold one.
bool pack_block_panel(BlockFormat format, const BlockSource& source, std::byte* panel);

/// The elements of a panel as a product uses them: rows [outputs, inputs], as many outputs as the weight has
/// in it.
void unpack_panel(const PackedWeight& weight, std::size_t panel, float* rows);

}  // namespace zoo::kernels
