#include "models/kernels/packed/packed_weight.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace zoo::kernels {
namespace {

constexpr std::size_t kGroupBytes = kPanelOutputs * (kGroup / 2 + sizeof(std::uint16_t));

constexpr std::size_t words(std::size_t inputs, std::size_t in_a_word) {
  return (inputs + in_a_word - 1) / in_a_word;
}

float element(const PanelSource& source, std::size_t output, std::size_t input) {
  const bool there = output < source.count && input < source.inputs;
  return there ? source.rows[output * source.row + input * source.column] : 0.0F;
}

// Rounds to the nearest integer, ties to even, for |value| below 2^22.
float rounded(float value) {
  constexpr float kMagic = 12582912.0F;  // 1.5 * 2^23
  return (value + kMagic) - kMagic;
}

float largest(const PanelSource& source, std::size_t output, std::size_t first, std::size_t last) {
  float found = 0;
  for (std::size_t k = first; k < last; ++k) found = std::max(found, std::fabs(element(source, output, k)));
  return found;
}

template <class T, class Convert>
void pack_words(const PanelSource& source, std::byte* panel, const Convert& convert) {
  constexpr std::size_t kInWord = 4 / sizeof(T);
  auto* to = reinterpret_cast<T*>(panel);
  for (std::size_t w = 0; w < words(source.inputs, kInWord); ++w) {
    for (std::size_t j = 0; j < kPanelOutputs; ++j) {
      for (std::size_t i = 0; i < kInWord; ++i) *to++ = convert(element(source, j, w * kInWord + i), j);
    }
  }
}

void pack_int8(const PanelSource& source, std::byte* panel, float* scales) {
  for (std::size_t j = 0; j < kPanelOutputs; ++j) scales[j] = largest(source, j, 0, source.inputs) / 127.0F;
  pack_words<std::uint8_t>(source, panel, [&](float value, std::size_t j) {
    const float q = scales[j] > 0 ? rounded(value / scales[j]) : 0.0F;
    return static_cast<std::uint8_t>(std::clamp(q, -127.0F, 127.0F) + 128.0F);
  });
}

// Loops over the outputs of a panel are the inner ones: the compiler makes vectors of them.
using Outputs = std::array<float, kPanelOutputs>;
using Group = std::array<Outputs, kGroup>;

float quantized(float value, float scale) {
  return scale != 0 ? std::clamp(rounded(value / scale), -8.0F, 7.0F) : 0.0F;
}

// Scales of a group of inputs: each a bfloat16 with the smallest squared error among some near the one that
// just holds the largest value.
Outputs group_scales(const Group& values) {
  Outputs scales{}, extremes{}, least, tried, errors;
  for (const Outputs& input : values) {
    for (std::size_t j = 0; j < kPanelOutputs; ++j)
      extremes[j] = std::fabs(input[j]) > std::fabs(extremes[j]) ? input[j] : extremes[j];
  }
  least.fill(INFINITY);
  for (const float steps : {-8.0F, -7.75F, -7.5F, -7.25F, -7.0F, -8.5F}) {
    for (std::size_t j = 0; j < kPanelOutputs; ++j)
      tried[j] = from_bfloat16(to_bfloat16(extremes[j] / steps));
    errors.fill(0.0F);
    for (const Outputs& input : values) {
      for (std::size_t j = 0; j < kPanelOutputs; ++j) {
        const float rest = input[j] - quantized(input[j], tried[j]) * tried[j];
        errors[j] += rest * rest;
      }
    }
    for (std::size_t j = 0; j < kPanelOutputs; ++j) {
      const bool better = errors[j] < least[j];
      scales[j] = better ? tried[j] : scales[j];
      least[j] = better ? errors[j] : least[j];
    }
  }
  return scales;
}

void pack_int4(const PanelSource& source, std::byte* panel) {
  Group values;
  for (std::size_t group = 0; group < words(source.inputs, kGroup); ++group, panel += kGroupBytes) {
    for (std::size_t j = 0; j < kPanelOutputs; ++j)
      for (std::size_t i = 0; i < kGroup; ++i) values[i][j] = element(source, j, group * kGroup + i);
    const Outputs scales = group_scales(values);
    for (std::size_t j = 0; j < kPanelOutputs; ++j) {
      const std::uint16_t bits = to_bfloat16(scales[j]);
      std::memcpy(panel + kPanelOutputs * kGroup / 2 + j * sizeof bits, &bits, sizeof bits);
    }
    for (Outputs& input : values)
      for (std::size_t j = 0; j < kPanelOutputs; ++j) input[j] = quantized(input[j], scales[j]) + 8.0F;
    auto* bytes = reinterpret_cast<std::uint8_t*>(panel);
    for (std::size_t i = 0; i < kGroup / 2; ++i) {
      const std::size_t word = i / 4, byte = i % 4;
      const Outputs &low = values[8 * word + byte], &high = values[8 * word + 4 + byte];
      for (std::size_t j = 0; j < kPanelOutputs; ++j) {
        const unsigned pair = static_cast<unsigned>(low[j]) | static_cast<unsigned>(high[j]) << 4;
        bytes[(word * kPanelOutputs + j) * 4 + byte] = static_cast<std::uint8_t>(pair);
      }
    }
  }
}

}  // namespace

std::size_t panel_bytes(WeightType type, std::size_t inputs) {
  switch (type) {
    case WeightType::kFloat32:
      return inputs * 4 * kPanelOutputs;
    case WeightType::kBfloat16:
      return words(inputs, 2) * 4 * kPanelOutputs;
    case WeightType::kInt8:
      return words(inputs, 4) * 4 * kPanelOutputs;
    case WeightType::kInt4:
      return words(inputs, kGroup) * kGroupBytes;
  }
  return 0;
}

std::size_t panel_count(std::size_t outputs) {
  return (outputs + kPanelOutputs - 1) / kPanelOutputs;
}

void pack_panel(WeightType type, const PanelSource& source, std::byte* panel, float* scales) {
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

float unpacked(const PackedWeight& weight, std::size_t output, std::size_t input) {
  const std::byte* panel = weight.panels + output / kPanelOutputs * panel_bytes(weight.type, weight.inputs);
  const std::size_t j = output % kPanelOutputs;
  const auto read = [&](auto value, std::size_t at) {
    std::memcpy(&value, panel + at * sizeof value, sizeof value);
    return value;
  };
  switch (weight.type) {
    case WeightType::kFloat32:
      return read(float{}, input * kPanelOutputs + j);
    case WeightType::kBfloat16:
      return from_bfloat16(read(std::uint16_t{}, (input / 2 * kPanelOutputs + j) * 2 + input % 2));
    case WeightType::kInt8:
      return (static_cast<float>(read(std::uint8_t{}, (input / 4 * kPanelOutputs + j) * 4 + input % 4)) -
              128) *
             weight.scales[output];
    case WeightType::kInt4: {
      panel += input / kGroup * kGroupBytes;
      const std::size_t i = input % kGroup;
      const unsigned pair = read(std::uint8_t{}, (i / 8 * kPanelOutputs + j) * 4 + i % 4);
      const unsigned q = i % 8 < 4 ? pair & 15U : pair >> 4;
      const float scale = from_bfloat16(read(std::uint16_t{}, kPanelOutputs * kGroup / 4 + j));
      return (static_cast<float>(q) - 8) * scale;
    }
  }
  return 0;
}

}  // namespace zoo::kernels
