// Packing of weights for one instruction set, in its namespace; the including file is compiled for it,
// without contraction of products and sums, so that all sets give the same bits. Loops over the outputs of a
// panel are the inner ones: the compiler makes vectors of them. Nothing is a template of the standard
// library, whose code the linker could give to other sets.
#include "models/kernels/packed/packed_weight.h"
#include "models/kernels/vector.h"

namespace zoo::kernels::ZOO_KERNELS_FOR {
namespace {

struct Outputs {
  float of[kPanelOutputs];
};

// kGroup inputs of a panel's outputs.
struct Group {
  Outputs inputs[kGroup];
};

ZOO_INLINE float magnitude(float value) {
  return __builtin_fabsf(value);
}

// Rounds to the nearest integer, ties to even, for |value| below 2^22.
ZOO_INLINE float rounded(float value) {
  constexpr float kMagic = 12582912.0F;  // 1.5 * 2^23
  return (value + kMagic) - kMagic;
}

ZOO_INLINE float clamped(float value, float low, float high) {
  const float above = value < low ? low : value;
  return above > high ? high : above;
}

// Inputs from `first` on, zero past the last input and output.
void gather(const PanelSource& source, std::size_t first, Group& group) {
  const std::size_t inputs = source.inputs - first < kGroup ? source.inputs - first : kGroup;
  if (inputs < kGroup || source.count < kPanelOutputs) group = {};
  const float* rows = source.rows + first * source.column;
  if (source.row == 1) {
    for (std::size_t i = 0; i < inputs; ++i)
      for (std::size_t j = 0; j < source.count; ++j) group.inputs[i].of[j] = rows[i * source.column + j];
    return;
  }
  for (std::size_t j = 0; j < source.count; ++j)
    for (std::size_t i = 0; i < inputs; ++i) group.inputs[i].of[j] = rows[j * source.row + i * source.column];
}

template <class T, class Convert>
void pack_words(const PanelSource& source, std::byte* panel, const Convert& convert) {
  constexpr std::size_t kInWord = 4 / sizeof(T);
  Group group;
  T* to = reinterpret_cast<T*>(panel);
  for (std::size_t first = 0; first < source.inputs; first += kGroup) {
    gather(source, first, group);
    for (std::size_t w = 0; w < kGroup && first + w < source.inputs;
         w += kInWord, to += kPanelOutputs * kInWord)
      for (std::size_t j = 0; j < kPanelOutputs; ++j)
        for (std::size_t i = 0; i < kInWord; ++i) to[j * kInWord + i] = convert(group.inputs[w + i].of[j], j);
  }
}

void pack_int8(const PanelSource& source, std::byte* panel, float* scales) {
  Outputs largest = {};
  Group group;
  for (std::size_t first = 0; first < source.inputs; first += kGroup) {
    gather(source, first, group);
    for (const Outputs& input : group.inputs)
      for (std::size_t j = 0; j < kPanelOutputs; ++j)
        largest.of[j] = largest.of[j] < magnitude(input.of[j]) ? magnitude(input.of[j]) : largest.of[j];
  }
  for (std::size_t j = 0; j < kPanelOutputs; ++j) scales[j] = largest.of[j] /= 127.0F;
  pack_words<std::uint8_t>(source, panel, [&](float value, std::size_t j) {
    const float scale = largest.of[j], q = scale > 0 ? rounded(value / scale) : 0.0F;
    return static_cast<std::uint8_t>(static_cast<int>(clamped(q, -127.0F, 127.0F) + 128.0F));
  });
}

ZOO_INLINE float quantized(float value, float scale) {
  return scale != 0 ? clamped(rounded(value / scale), -8.0F, 7.0F) : 0.0F;
}

// Scales of a group of inputs: each a bfloat16 with the smallest squared error among some near the one that
// just holds the largest value.
Outputs group_scales(const Group& group) {
  Outputs scales = {}, extremes = {}, least, tried, errors;
  for (const Outputs& input : group.inputs)
    for (std::size_t j = 0; j < kPanelOutputs; ++j)
      extremes.of[j] = magnitude(input.of[j]) > magnitude(extremes.of[j]) ? input.of[j] : extremes.of[j];
  for (float& error : least.of) error = __builtin_inff();
  constexpr float kSteps[] = {-8.0F, -7.75F, -7.5F, -7.25F, -7.0F, -8.5F};
  for (const float steps : kSteps) {
    for (std::size_t j = 0; j < kPanelOutputs; ++j)
      tried.of[j] = from_bfloat16(to_bfloat16(extremes.of[j] / steps));
    errors = {};
    for (const Outputs& input : group.inputs) {
      for (std::size_t j = 0; j < kPanelOutputs; ++j) {
        const float rest = input.of[j] - quantized(input.of[j], tried.of[j]) * tried.of[j];
        errors.of[j] += rest * rest;
      }
    }
    for (std::size_t j = 0; j < kPanelOutputs; ++j) {
      const bool better = errors.of[j] < least.of[j];
      scales.of[j] = better ? tried.of[j] : scales.of[j];
      least.of[j] = better ? errors.of[j] : least.of[j];
    }
  }
  return scales;
}

void pack_int4(const PanelSource& source, std::byte* panel) {
  Group group;
  for (std::size_t first = 0; first < source.inputs; first += kGroup, panel += kGroupBytes) {
    gather(source, first, group);
    const Outputs scales = group_scales(group);
    auto* halves = reinterpret_cast<std::uint16_t*>(panel + kPanelOutputs * kGroup / 2);
    for (std::size_t j = 0; j < kPanelOutputs; ++j) halves[j] = to_bfloat16(scales.of[j]);
    for (Outputs& input : group.inputs)
      for (std::size_t j = 0; j < kPanelOutputs; ++j)
        input.of[j] = quantized(input.of[j], scales.of[j]) + 8.0F;
    auto* words = reinterpret_cast<std::uint32_t*>(panel);
    for (std::size_t w = 0; w < kGroup / 8; ++w, words += kPanelOutputs) {
      for (std::size_t j = 0; j < kPanelOutputs; ++j) {
        std::uint32_t word = 0;
        for (std::size_t byte = 0; byte < 4; ++byte) {
          const auto low = static_cast<std::uint32_t>(static_cast<int>(group.inputs[8 * w + byte].of[j])),
                     high =
                         static_cast<std::uint32_t>(static_cast<int>(group.inputs[8 * w + 4 + byte].of[j]));
          word |= (low | high << 4) << (8 * byte);
        }
        words[j] = word;
      }
    }
  }
}

}  // namespace

void pack(WeightType type, const PanelSource& source, std::byte* panel, float* scales) {
  switch (type) {
    case WeightType::kFloat32:
      return pack_words<float>(source, panel, [](float value, std::size_t) { return value; });
    case WeightType::kBfloat16:
      return pack_words<std::uint16_t>(source, panel,
                                       [](float value, std::size_t) { return to_bfloat16(value); });
    case WeightType::kInt8:
      return pack_int8(source, panel, scales);
    case WeightType::kInt4:
      return pack_int4(source, panel);
  }
}

}  // namespace zoo::kernels::ZOO_KERNELS_FOR
