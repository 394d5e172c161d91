#include "models/kernels/packed/packed_weight.h"

#include <algorithm>

#include "models/kernels/cpu.h"

namespace zoo::kernels {

// pack.cpp
#define ZOO_DECLARE(set)                                         \
  namespace set {                                                \
  void pack(WeightType, const PanelSource&, std::byte*, float*); \
  void pack_int4(const FeedbackSource&, std::byte*);             \
  }
ZOO_DECLARE(portable)
#if defined(__x86_64__)
ZOO_DECLARE(avx2)
ZOO_DECLARE(avx512)
#endif
#undef ZOO_DECLARE

namespace {

constexpr std::size_t words(std::size_t inputs, std::size_t in_a_word) {
  return (inputs + in_a_word - 1) / in_a_word;
}

// Calls f with a function (output in the panel, input) -> element.
template <class F> void with_elements(const PackedWeight& weight, std::size_t panel, const F& f) {
  const std::byte* const data = panels_of(weight, panel, panel + 1).data();
  const auto read = [](auto value, const std::byte* at) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (weight.type) {
    case WeightType::kFloat32:
      return f([&](std::size_t j, std::size_t input) {
        return read(float{}, data + (input * kPanelOutputs + j) * 4);
      });
    case WeightType::kBfloat16:
      return f([&](std::size_t j, std::size_t input) {
        const std::size_t half = (input / 2 * kPanelOutputs + j) * 2 + input % 2;
        return from_bfloat16(read(std::uint16_t{}, data + half * 2));
      });
    case WeightType::kInt8: {
      const float* const scales = weight.scales + panel * kPanelOutputs;
      return f([&](std::size_t j, std::size_t input) {
        const auto q = std::to_integer<int>(data[(input / 4 * kPanelOutputs + j) * 4 + input % 4]);
        return static_cast<float>(q - 128) * scales[j];
      });
    }
    case WeightType::kInt4:
      return f([&](std::size_t j, std::size_t input) {
        const std::byte* const group = data + input / kGroup * kGroupBytes;
        const std::size_t i = input % kGroup;
        const auto pair = std::to_integer<unsigned>(group[(i / 8 * kPanelOutputs + j) * 4 + i % 4]);
        const unsigned q = i % 8 < 4 ? pair & 15U : pair >> 4;
        const unsigned steps = read(std::uint16_t{}, group + kPanelOutputs * kGroup / 2 + 2 * j);
        const std::uint32_t bits = (steps & 0xFFF0U) << 15;
        return (static_cast<float>(q) - static_cast<float>(steps & 15U)) *
               read(float{}, reinterpret_cast<const std::byte*>(&bits));
      });
    case WeightType::kBlocks:
      return f([&](std::size_t j, std::size_t input) { return unpacked(weight.blocks[panel], j, input); });
  }
}

}  // namespace

std::size_t panel_bytes(WeightType type, std::size_t inputs) {
  switch (type) {
    case WeightType::kFloat32: return inputs * 4 * kPanelOutputs;
    case WeightType::kBfloat16: return words(inputs, 2) * 4 * kPanelOutputs;
    case WeightType::kInt8: return words(inputs, 4) * 4 * kPanelOutputs;
    case WeightType::kInt4: return words(inputs, kGroup) * kGroupBytes;
    case WeightType::kBlocks: break;  // depends on the panel
  }
  return 0;
}

std::span<const std::byte> panels_of(const PackedWeight& weight, std::size_t first, std::size_t last) {
  if (first >= last) return {};
  if (weight.type == WeightType::kBlocks) {
    const BlockPanel& end = weight.blocks[last - 1];
    const std::byte* begin = weight.blocks[first].data;
    return {begin, end.data + panel_bytes(end.format, weight.inputs)};
  }
  const std::size_t bytes = panel_bytes(weight.type, weight.inputs);
  return {weight.panels + first * bytes, (last - first) * bytes};
}

std::size_t panel_count(std::size_t outputs) { return (outputs + kPanelOutputs - 1) / kPanelOutputs; }

void pack_panel(WeightType type, const PanelSource& source, std::byte* panel, float* scales) {
#if defined(__x86_64__)
  if (instruction_set() >= InstructionSet::kAvx512) return avx512::pack(type, source, panel, scales);
  if (instruction_set() >= InstructionSet::kAvx2) return avx2::pack(type, source, panel, scales);
#endif
  portable::pack(type, source, panel, scales);
}

void pack_int4_panel(const FeedbackSource& source, std::byte* panel) {
#if defined(__x86_64__)
  if (instruction_set() >= InstructionSet::kAvx512) return avx512::pack_int4(source, panel);
  if (instruction_set() >= InstructionSet::kAvx2) return avx2::pack_int4(source, panel);
#endif
  portable::pack_int4(source, panel);
}

float unpacked(const PackedWeight& weight, std::size_t output, std::size_t input) {
  float result = 0;
  with_elements(weight, output / kPanelOutputs,
                [&](const auto& element) { result = element(output % kPanelOutputs, input); });
  return result;
}

void unpack_panel(const PackedWeight& weight, std::size_t panel, float* rows) {
  const std::size_t count = std::min(kPanelOutputs, weight.outputs - panel * kPanelOutputs);
  with_elements(weight, panel, [&](const auto& element) {
    for (std::size_t j = 0; j < count; ++j)
      for (std::size_t input = 0; input < weight.inputs; ++input) *rows++ = element(j, input);
  });
}

}  // namespace zoo::kernels
