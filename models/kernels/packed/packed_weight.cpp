#include "models/kernels/packed/packed_weight.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include <c10/util/Half.h>

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

template <class T> T read(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T> void write(const T& value, void* to) { std::memcpy(to, &value, sizeof value); }

constexpr std::size_t word_count(std::size_t inputs, std::size_t in_a_word) {
  return (inputs + in_a_word - 1) / in_a_word;
}

// Scale and zero point of an output in a group of an int4 panel.
struct Int4Steps {
  float scale, zero;

  Int4Steps(const std::byte* group, std::size_t output) {
    const unsigned steps = read<std::uint16_t>(group + kPanelOutputs * kGroup / 2 + 2 * output);
    scale = std::bit_cast<float>((steps & 0xFFF0U) << 15);
    zero = static_cast<float>(steps & 15U);
  }
  float of(unsigned number) const { return (static_cast<float>(number) - zero) * scale; }
};

// A group of a panel: its inputs, the bits of a number, the zero point of formats without minimums.
struct Layout {
  std::size_t inputs, bits;
  bool has_minimums = false;
  float zero = 0;

  std::size_t number_bytes() const { return kPanelOutputs * inputs * bits / 8; }
  std::size_t bytes() const { return number_bytes() + kPanelOutputs * (has_minimums ? 4 : 2); }
};

Layout layout_of(BlockFormat format) {
  switch (format) {
    case BlockFormat::kNibbles: return {.inputs = kGroup, .bits = 4, .zero = 8};
    case BlockFormat::kNibblesMinimum: return {.inputs = kGroup, .bits = 4, .has_minimums = true};
    case BlockFormat::kFiveBits: return {.inputs = kGroup, .bits = 5, .has_minimums = true};
    case BlockFormat::kSixBits: return {.inputs = kRun, .bits = 6, .zero = 32};
    case BlockFormat::kBytes: return {.inputs = kGroup, .bits = 8, .zero = 128};
    case BlockFormat::kRuns: return {.inputs = kRun, .bits = 8, .has_minimums = true};
  }
  return {};
}

constexpr std::size_t kPlane = 4 * kPanelOutputs;  // bytes between an output's words

// Writes an output's words of a group; those of all outputs are interleaved.
void write_numbers(const Layout& layout, const std::uint8_t* numbers, std::byte* words) {
  if (layout.bits == 8) {
    for (std::size_t i = 0; i < layout.inputs; i += 4, words += kPlane)
      write(read<std::uint32_t>(numbers + i), words);
    return;
  }
  const std::size_t high_bits = layout.bits - 4;
  const std::uint32_t mask = ((1U << high_bits) - 1) * 0x01010101U;
  std::uint32_t low = 0, high = 0;
  for (std::size_t i = 0; i < layout.inputs; i += 4) {
    const auto four = read<std::uint32_t>(numbers + i);
    high |= (four >> 4 & mask) << i / 4 * high_bits;
    low |= (four & 0x0F0F0F0FU) << i % 8;
    if (i % 8 == 0) continue;
    write(low, words);
    words += kPlane;
    low = 0;
  }
  if (high_bits > 0) write(high, words);
}

unsigned number_at(const Layout& layout, const std::byte* words, std::size_t i) {
  const auto byte = [&](std::size_t word) { return std::to_integer<unsigned>(words[word * kPlane + i % 4]); };
  if (layout.bits == 8) return byte(i / 4);
  const unsigned low = byte(i / 8) >> i / 4 % 2 * 4 & 15U;
  const std::size_t high_bits = layout.bits - 4;
  if (high_bits == 0) return low;
  return low | (byte(layout.inputs / 8) >> i / 4 * high_bits & ((1U << high_bits) - 1)) << 4;
}

float unpacked(const BlockPanel& panel, std::size_t output, std::size_t input) {
  const Layout layout = layout_of(panel.format);
  const std::byte* group = panel.data + input / layout.inputs * layout.bytes();
  const unsigned q = number_at(layout, group + 4 * output, input % layout.inputs);
  const std::byte* steps = group + layout.number_bytes();
  const auto step = [&](std::size_t i) -> float { return read<c10::Half>(steps + 2 * i); };
  const float scale = step(output);
  const float minimum = layout.has_minimums ? step(kPanelOutputs + output) : scale * layout.zero;
  return scale * static_cast<float>(q) - minimum;
}

// A minimum that is a multiple of the scale stays a multiple after the scale is rounded.
float fitting_minimum(float minimum, float scale, float rounded) {
  const float zero = scale == 0 ? 0 : minimum / scale;
  return zero >= 1 && zero <= 255 && zero == std::rint(zero) ? zero * rounded : minimum;
}

}  // namespace

std::size_t panel_bytes(WeightType type, std::size_t inputs) {
  switch (type) {
    case WeightType::kFloat32: return inputs * 4 * kPanelOutputs;
    case WeightType::kBfloat16: return word_count(inputs, 2) * 4 * kPanelOutputs;
    case WeightType::kInt8: return word_count(inputs, 4) * 4 * kPanelOutputs;
    case WeightType::kInt4: return word_count(inputs, kGroup) * kGroupBytes;
    case WeightType::kBlocks: break;  // depends on the panel
  }
  return 0;
}

std::size_t panel_bytes(BlockFormat format, std::size_t inputs) {
  const Layout layout = layout_of(format);
  return inputs / layout.inputs * layout.bytes();
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

bool pack_block_panel(BlockFormat format, const BlockSource& source, std::byte* panel) {
  const Layout layout = layout_of(format);
  bool holds = true;
  std::memset(panel, 0, panel_bytes(format, source.inputs));
  for (std::size_t first = 0; first < source.inputs; first += layout.inputs, panel += layout.bytes()) {
    std::byte *scales = panel + layout.number_bytes(), *minimums = scales + 2 * kPanelOutputs;
    for (std::size_t j = 0; j < source.count; ++j) {
      write_numbers(layout, source.numbers + j * source.inputs + first, panel + 4 * j);
      const std::size_t run = (j * source.inputs + first) / kRun;
      const c10::Half scale = source.scales[run];
      write(scale, scales + 2 * j);
      holds = holds && std::isfinite(static_cast<float>(scale));
      if (!layout.has_minimums) continue;
      const c10::Half minimum = fitting_minimum(source.minimums[run], source.scales[run], scale);
      write(minimum, minimums + 2 * j);
      holds = holds && std::isfinite(static_cast<float>(minimum));
    }
  }
  return holds;
}

void unpack_panel(const PackedWeight& weight, std::size_t panel, float* rows) {
  const std::size_t count = std::min(kPanelOutputs, weight.outputs - panel * kPanelOutputs);
  const std::byte* const data = panels_of(weight, panel, panel + 1).data();
  // Group by group, as they lie in memory.
  const auto for_groups = [&](const auto& unpack_group) {
    for (std::size_t first = 0; first < weight.inputs; first += kGroup)
      for (std::size_t j = 0; j < count; ++j)
        unpack_group(first, j, std::min(kGroup, weight.inputs - first), rows + j * weight.inputs + first);
  };
  // From a function of the output in the panel and the input.
  const auto unpack = [&](const auto& element) {
    for_groups([&](std::size_t first, std::size_t j, std::size_t size, float* to) {
      for (std::size_t i = 0; i < size; ++i) to[i] = element(j, first + i);
    });
  };
  switch (weight.type) {
    case WeightType::kFloat32:
      return unpack([&](std::size_t j, std::size_t input) {
        return read<float>(data + (input * kPanelOutputs + j) * 4);
      });
    case WeightType::kBfloat16:
      return unpack([&](std::size_t j, std::size_t input) {
        const std::size_t half = (input / 2 * kPanelOutputs + j) * 2 + input % 2;
        return from_bfloat16(read<std::uint16_t>(data + half * 2));
      });
    case WeightType::kInt8: {
      const float* const scales = weight.scales + panel * kPanelOutputs;
      return unpack([&](std::size_t j, std::size_t input) {
        const auto q = std::to_integer<int>(data[(input / 4 * kPanelOutputs + j) * 4 + input % 4]);
        return static_cast<float>(q - 128) * scales[j];
      });
    }
    case WeightType::kInt4:
      return for_groups([&](std::size_t first, std::size_t j, std::size_t size, float* to) {
        const std::byte* const group = data + first / kGroup * kGroupBytes;
        const Int4Steps steps(group, j);
        float numbers[kGroup];
        for (std::size_t i = 0; i < kGroup; i += 8) {
          const auto word = read<std::uint32_t>(group + (i / 8 * kPanelOutputs + j) * 4);
          for (std::size_t k = 0; k < 4; ++k) {
            numbers[i + k] = steps.of(word >> 8 * k & 15U);
            numbers[i + 4 + k] = steps.of(word >> (8 * k + 4) & 15U);
          }
        }
        std::copy_n(numbers, size, to);
      });
    case WeightType::kBlocks:
      return unpack(
          [&](std::size_t j, std::size_t input) { return unpacked(weight.blocks[panel], j, input); });
  }
}

}  // namespace zoo::kernels
