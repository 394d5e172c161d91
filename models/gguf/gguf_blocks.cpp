#include "models/gguf/gguf_blocks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <c10/util/Half.h>

#include "data/base/error.h"

namespace zoo {
namespace {

// Blocks as ggml-common.h lays them out: scales in 16 bits, then the high bits of the numbers, then their low
// four bits, of the first half of a run in the low half of each byte.
using Bytes = const std::uint8_t*;

constexpr std::size_t kRun = BlockRows::kRun, kLargestBlock = 256;

float half_at(Bytes at) {
  c10::Half value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// The i-th of signed bytes, plus 128.
std::uint8_t from_signed(Bytes bytes, int i) { return bytes[i] ^ 128; }

// The i-th of 32 numbers of four bits.
std::uint8_t nibble(Bytes bytes, int i) { return i < 16 ? bytes[i] & 15 : bytes[i - 16] >> 4; }

// The i-th of 32 numbers of five bits, whose highest stand in the four bytes before the others.
std::uint8_t five_bits(Bytes bytes, int i) {
  return static_cast<std::uint8_t>(nibble(bytes + 4, i) | (bytes[i / 8] >> (i % 8) & 1) << 4);
}

// Runs of 16 numbers of a block: w = scale q - minimum. The products are exact in float32, and so is the
// difference of types without a minimum, whose zero point becomes one.
struct Runs {
  std::uint8_t* numbers;
  float *scales, *minimums;

  Runs after(std::size_t runs) const { return {numbers + kRun * runs, scales + runs, minimums + runs}; }
  void set(std::size_t run, float scale, float minimum) const {
    scales[run] = scale;
    minimums[run] = minimum;
  }
  void set_both(float scale, float minimum) const {
    set(0, scale, minimum);
    set(1, scale, minimum);
  }
};

// Q8_0, Q4_0 and Q5_0: 32 numbers with a scale.
template <auto Number, int Zero> void scaled_block(Bytes block, const Runs& to) {
  to.set_both(half_at(block), Zero * half_at(block));
  for (int i = 0; i < 32; ++i) to.numbers[i] = Number(block + 2, i);
}

// Q4_1 and Q5_1: 32 numbers with a scale and a minimum.
template <auto Number> void block_with_minimum(Bytes block, const Runs& to) {
  to.set_both(half_at(block), -half_at(block + 2));
  for (int i = 0; i < 32; ++i) to.numbers[i] = Number(block + 4, i);
}

// Scale and minimum of the j-th of eight parts of 32, each of six bits, in twelve bytes.
std::pair<int, int> scale_and_minimum(Bytes packed, int j) {
  if (j < 4) return {packed[j] & 63, packed[j + 4] & 63};
  return {(packed[j + 4] & 15) | packed[j - 4] >> 6 << 4, packed[j + 4] >> 4 | packed[j] >> 6 << 4};
}

// Q4_K and Q5_K: eight parts of 32 from `Low` on; at `High`, unless that is 0, a fifth bit for each, of part
// j in bit j.
template <int High, int Low> void parts_of_32(Bytes block, const Runs& to) {
  for (int j = 0; j < 8; ++j) {
    const auto [scale, minimum] = scale_and_minimum(block + 4, j);
    const Runs part = to.after(static_cast<std::size_t>(2 * j));
    part.set_both(half_at(block) * static_cast<float>(scale),
                  half_at(block + 2) * static_cast<float>(minimum));
    for (int i = 0; i < 32; ++i) {
      const int bits = block[Low + j / 2 * 32 + i] >> (j % 2 * 4) & 15;
      const int fifth = High == 0 ? 0 : (block[High + i] >> j & 1) << 4;
      part.numbers[i] = static_cast<std::uint8_t>(bits | fifth);
    }
  }
}

// Sixteen runs: 128 bytes of low bits, 64 of two high bits, 16 scales, a scale of them.
void q6_k(Bytes block, const Runs& to) {
  for (std::size_t run = 0; run < 16; ++run) {
    const float scale = half_at(block + 208) * static_cast<float>(static_cast<std::int8_t>(block[192 + run]));
    to.set(run, scale, 32 * scale);
  }
  for (int n = 0; n < 256; ++n) {
    const int half = n / 128, part = n % 128 / 32, i = n % 32;
    const int low = block[half * 64 + part % 2 * 32 + i] >> (part / 2 * 4) & 15;
    const int high = block[128 + half * 32 + i] >> (2 * part) & 3;
    to.numbers[n] = static_cast<std::uint8_t>(low | high << 4);
  }
}

struct Decoder {
  std::string_view type;
  void (*decode)(Bytes, const Runs&);
  int zero = 0;  // the zero point of types that have no minimum
};

const Decoder& decoder_of(std::string_view type) {
  static constexpr Decoder kDecoders[] = {{"Q8_0", scaled_block<from_signed, 128>, 128},
                                          {"Q4_0", scaled_block<nibble, 8>, 8},
                                          {"Q4_1", block_with_minimum<nibble>},
                                          {"Q5_0", scaled_block<five_bits, 16>, 16},
                                          {"Q5_1", block_with_minimum<five_bits>},
                                          {"Q4_K", parts_of_32<0, 16>},
                                          {"Q5_K", parts_of_32<16, 48>},
                                          {"Q6_K", q6_k, 32}};
  return *std::ranges::find(kDecoders, type, &Decoder::type);
}

void put_scale(float value, char* to) {
  const c10::Half half = value;
  if (std::isinf(static_cast<float>(half)))
    throw Error("has numbers beyond the range of its blocks' scales; bf16 or f32 holds them");
  std::memcpy(to, &half, sizeof half);
}

void to_q8_0(const float* from, char* block) {
  float largest = 0;
  for (int i = 0; i < 32; ++i) largest = std::max(largest, std::abs(from[i]));
  const float d = largest / 127, inverse = d == 0 ? 0 : 1 / d;
  put_scale(d, block);
  for (int i = 0; i < 32; ++i) block[2 + i] = static_cast<char>(std::round(from[i] * inverse));
}

// The number of the largest magnitude, with its sign, becomes -8.
void to_q4_0(const float* from, char* block) {
  const float largest =
      *std::max_element(from, from + 32, [](float a, float b) { return std::abs(a) < std::abs(b); });
  const float d = largest / -8, inverse = d == 0 ? 0 : 1 / d;
  put_scale(d, block);
  const auto bits = [&](int i) { return std::min(15, static_cast<int>(from[i] * inverse + 8.5F)); };
  for (int i = 0; i < 16; ++i) block[2 + i] = static_cast<char>(bits(i) | bits(i + 16) << 4);
}

constexpr std::int64_t kGrain = 1 << 12;  // numbers worth a thread

}  // namespace

at::Tensor dequantized(const GgufType& type, const std::byte* blocks,
                       const std::vector<std::int64_t>& shape) {
  at::Tensor tensor = at::empty(shape, at::kFloat);
  float* to = tensor.mutable_data_ptr<float>();
  const Decoder& decoder = decoder_of(type.name);
  at::parallel_for(
      0, tensor.numel() / static_cast<std::int64_t>(type.block), kGrain / 32,
      [&](std::int64_t begin, std::int64_t end) {
        std::uint8_t numbers[kLargestBlock];
        float scales[kLargestBlock / kRun], minimums[kLargestBlock / kRun];
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
          decoder.decode(reinterpret_cast<Bytes>(blocks) + i * type.bytes, {numbers, scales, minimums});
          for (std::size_t n = 0; n < type.block; ++n) {
            const auto number = static_cast<float>(numbers[n] - decoder.zero);
            // Not less a minimum of zero, which would change the sign of zeros.
            const float product = scales[n / kRun] * number;
            to[i * type.block + n] = decoder.zero > 0 ? product : product - minimums[n / kRun];
          }
        }
      });
  return tensor;
}

void append_blocks(const GgufType& type, const std::byte* blocks, std::size_t count, BlockRows& rows) {
  const std::size_t begin = rows.numbers.size(), run = begin / kRun, end = begin + count * type.block;
  rows.numbers.resize(end);
  rows.scales.resize(end / kRun);
  rows.minimums.resize(end / kRun);
  const Runs to{rows.numbers.data() + begin, rows.scales.data() + run, rows.minimums.data() + run};
  const Decoder& decoder = decoder_of(type.name);
  for (std::size_t i = 0; i < count; ++i)
    decoder.decode(reinterpret_cast<Bytes>(blocks) + i * type.bytes, to.after(i * type.block / kRun));
}

std::string quantized(const GgufType& type, const at::Tensor& tensor) {
  const at::Tensor numbers = tensor.to(at::kFloat).contiguous();
  if (!numbers.isfinite().all().item<bool>()) throw Error("has numbers that are not finite");
  const float* from = numbers.const_data_ptr<float>();
  const auto count = static_cast<std::size_t>(numbers.numel()) / type.block;
  std::string blocks(count * type.bytes, '\0');
  for (std::size_t i = 0; i < count; ++i)
    (type.bytes == 34 ? to_q8_0 : to_q4_0)(from + i * type.block, blocks.data() + i * type.bytes);
  return blocks;
}

}  // namespace zoo
