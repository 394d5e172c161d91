// Packing of weights, compiled once for each instruction set, without contraction of products and sums, so
// that all sets give the same bits. The inner loops run over the outputs of a panel: the compiler vectorizes
// them. No standard library templates: the linker could merge their code across sets.
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

ZOO_INLINE float magnitude(float value) { return __builtin_fabsf(value); }

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
  const std::size_t inputs = smaller(source.inputs - first, kGroup);
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

// Steps of a group of inputs: w = scale (q - zero).
struct Steps {
  Outputs scales, zeros, inverses;  // of the scales
};

// The nearest float with 4 bits of mantissa.
ZOO_INLINE std::uint32_t scale_bits(float value) {
  return (__builtin_bit_cast(std::uint32_t, value) + 0x40000U) & 0xFFF80000U;
}

ZOO_INLINE float rounded_scale(float value) { return __builtin_bit_cast(float, scale_bits(value)); }

// Zero if the scale is so small that its inverse overflows: all weights are then zero.
ZOO_INLINE float inverse_of(float scale) { return scale > 1e-30F ? 1.0F / scale : 0.0F; }

ZOO_INLINE float quantized(float value, float inverse, float zero) {
  return clamped(rounded(value * inverse + zero), 0.0F, 15.0F);
}

// The steps with the smallest squared error, weighted per input by `importance` (or 1), among candidates that
// span all of a group's values or clip the largest.
Steps group_steps(const Group& group, const float* importance) {
  Steps steps = {};
  Outputs low = {}, high = {}, least, scale, zero, inverse, errors;
  for (const Outputs& input : group.inputs) {
    for (std::size_t j = 0; j < kPanelOutputs; ++j) {
      low.of[j] = input.of[j] < low.of[j] ? input.of[j] : low.of[j];
      high.of[j] = input.of[j] > high.of[j] ? input.of[j] : high.of[j];
    }
  }
  for (float& error : least.of) error = __builtin_inff();
  constexpr float kSpans[] = {1.0F, 0.95F, 0.9F, 0.85F, 0.8F};
  for (const float span : kSpans) {
    for (std::size_t j = 0; j < kPanelOutputs; ++j) {
      scale.of[j] = rounded_scale((high.of[j] / 15.0F - low.of[j] / 15.0F) * span);
      inverse.of[j] = inverse_of(scale.of[j]);
      zero.of[j] = clamped(rounded(-low.of[j] * span * inverse.of[j]), 0.0F, 15.0F);
    }
    errors = {};
    for (std::size_t i = 0; i < kGroup; ++i) {
      const float factor = importance != nullptr ? importance[i] : 1.0F;
      const Outputs& input = group.inputs[i];
      for (std::size_t j = 0; j < kPanelOutputs; ++j) {
        const float q = quantized(input.of[j], inverse.of[j], zero.of[j]),
                    rest = input.of[j] - (q - zero.of[j]) * scale.of[j];
        errors.of[j] += rest * rest * factor;
      }
    }
    for (std::size_t j = 0; j < kPanelOutputs; ++j) {
      const bool better = errors.of[j] < least.of[j];
      steps.scales.of[j] = better ? scale.of[j] : steps.scales.of[j];
      steps.zeros.of[j] = better ? zero.of[j] : steps.zeros.of[j];
      steps.inverses.of[j] = better ? inverse.of[j] : steps.inverses.of[j];
      least.of[j] = better ? errors.of[j] : least.of[j];
    }
  }
  return steps;
}

// Writes a group of a panel, whose numbers are in [0, 15].
void write_group(const Group& numbers, const Steps& steps, std::byte* panel) {
  auto* halves = reinterpret_cast<std::uint16_t*>(panel + kPanelOutputs * kGroup / 2);
  for (std::size_t j = 0; j < kPanelOutputs; ++j)
    halves[j] = static_cast<std::uint16_t>(scale_bits(steps.scales.of[j]) >> 15 |
                                           static_cast<std::uint32_t>(static_cast<int>(steps.zeros.of[j])));
  auto* words = reinterpret_cast<std::uint32_t*>(panel);
  for (std::size_t w = 0; w < kGroup / 8; ++w, words += kPanelOutputs) {
    for (std::size_t j = 0; j < kPanelOutputs; ++j) {
      std::uint32_t word = 0;
      for (std::size_t byte = 0; byte < 4; ++byte) {
        const auto low = static_cast<std::uint32_t>(static_cast<int>(numbers.inputs[8 * w + byte].of[j])),
                   high =
                       static_cast<std::uint32_t>(static_cast<int>(numbers.inputs[8 * w + 4 + byte].of[j]));
        word |= (low | high << 4) << (8 * byte);
      }
      words[j] = word;
    }
  }
}

void pack_int4(const PanelSource& source, std::byte* panel) {
  Group group;
  for (std::size_t first = 0; first < source.inputs; first += kGroup, panel += kGroupBytes) {
    gather(source, first, group);
    const Steps steps = group_steps(group, nullptr);
    for (Outputs& input : group.inputs)
      for (std::size_t j = 0; j < kPanelOutputs; ++j)
        input.of[j] = quantized(input.of[j], steps.inverses.of[j], steps.zeros.of[j]);
    write_group(group, steps, panel);
  }
}

// Rounds the group's inputs one by one, passes each error on within the group, and returns the errors.
void round_group(const FeedbackSource& source, std::size_t first, std::size_t count, const Steps& steps,
                 Group& group, Group& errors) {
  for (std::size_t i = 0; i < count; ++i) {
    float *input = group.inputs[i].of, *error = errors.inputs[i].of;
    for (std::size_t j = 0; j < kPanelOutputs; ++j) {
      const float q = quantized(input[j], steps.inverses.of[j], steps.zeros.of[j]);
      error[j] = input[j] - (q - steps.zeros.of[j]) * steps.scales.of[j];
      input[j] = q;
    }
    for (std::size_t k = i + 1; k < count; ++k) {
      const float share = source.feedback[(first + k) * source.inputs + first + i];
      for (std::size_t j = 0; j < kPanelOutputs; ++j) group.inputs[k].of[j] -= share * error[j];
    }
  }
  for (std::size_t i = count; i < kGroup; ++i) group.inputs[i] = steps.zeros;
}

}  // namespace

void pack_int4(const FeedbackSource& source, std::byte* panel) {
  const std::size_t inputs = source.inputs;
  const PanelSource rows{source.weights, 1, kPanelOutputs, kPanelOutputs, inputs};
  Group group, errors;
  float importance[kGroup];
  for (std::size_t first = 0; first < inputs; first += kGroup, panel += kGroupBytes) {
    const std::size_t count = smaller(inputs - first, kGroup);
    gather(rows, first, group);
    for (std::size_t i = 0; i < kGroup; ++i) importance[i] = i < count ? source.importance[first + i] : 0.0F;
    const Steps steps = group_steps(group, importance);
    round_group(source, first, count, steps, group, errors);
    write_group(group, steps, panel);
    for (std::size_t k = first + count; k < inputs; ++k) {
      Outputs sums = {};
      for (std::size_t i = 0; i < count; ++i) {
        const float share = source.feedback[k * inputs + first + i];
        for (std::size_t j = 0; j < kPanelOutputs; ++j) sums.of[j] += share * errors.inputs[i].of[j];
      }
      float* weights = source.weights + k * kPanelOutputs;
      for (std::size_t j = 0; j < kPanelOutputs; ++j) weights[j] -= sums.of[j];
    }
  }
}

void pack(WeightType type, const PanelSource& source, std::byte* panel, float* scales) {
  switch (type) {
    case WeightType::kFloat32:
      return pack_words<float>(source, panel, [](float value, std::size_t) { return value; });
    case WeightType::kBfloat16:
      return pack_words<std::uint16_t>(source, panel,
                                       [](float value, std::size_t) { return to_bfloat16(value); });
    case WeightType::kInt8: return pack_int8(source, panel, scales);
    case WeightType::kInt4: return pack_int4(source, panel);
    case WeightType::kBlocks: break;  // pack_block_panel
  }
}

}  // namespace zoo::kernels::ZOO_KERNELS_FOR
