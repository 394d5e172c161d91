#include "models/formats/gguf_blocks.h"

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

float half_at(Bytes at) {
  c10::Half value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// The i-th of 32 numbers of four bits.
int nibble(Bytes bytes, int i) {
  return i < 16 ? bytes[i] & 15 : bytes[i - 16] >> 4;
}

// The i-th of 32 numbers of five bits, whose highest stand in the four bytes before the others.
int five_bits(Bytes bytes, int i) {
  return nibble(bytes + 4, i) | (bytes[i / 8] >> (i % 8) & 1) << 4;
}

void q8_0(Bytes block, float* to) {
  const float d = half_at(block);
  for (int i = 0; i < 32; ++i) to[i] = static_cast<float>(static_cast<std::int8_t>(block[2 + i])) * d;
}

void q4_0(Bytes block, float* to) {
  const float d = half_at(block);
  for (int i = 0; i < 16; ++i) {
    to[i] = d * static_cast<float>((block[2 + i] & 15) - 8);
    to[16 + i] = d * static_cast<float>((block[2 + i] >> 4) - 8);
  }
}

void q5_0(Bytes block, float* to) {
  for (int i = 0; i < 32; ++i) to[i] = half_at(block) * static_cast<float>(five_bits(block + 2, i) - 16);
}

void q4_1(Bytes block, float* to) {
  for (int i = 0; i < 32; ++i)
    to[i] = half_at(block) * static_cast<float>(nibble(block + 4, i)) + half_at(block + 2);
}

void q5_1(Bytes block, float* to) {
  for (int i = 0; i < 32; ++i)
    to[i] = half_at(block) * static_cast<float>(five_bits(block + 4, i)) + half_at(block + 2);
}

// Scale and minimum of the j-th of eight runs, each of six bits, in twelve bytes.
std::pair<int, int> scale_and_minimum(Bytes packed, int j) {
  if (j < 4) return {packed[j] & 63, packed[j + 4] & 63};
  return {(packed[j + 4] & 15) | packed[j - 4] >> 6 << 4, packed[j + 4] >> 4 | packed[j] >> 6 << 4};
}

// Q4_K and Q5_K: eight runs of 32; `high` holds a fifth bit for each, of run j in bit j. Null: none.
void runs_of_32(Bytes block, Bytes high, Bytes low, float* to) {
  for (int j = 0; j < 8; ++j) {
    const auto [scale, minimum] = scale_and_minimum(block + 4, j);
    const float d = half_at(block) * static_cast<float>(scale);
    const float m = half_at(block + 2) * static_cast<float>(minimum);
    for (int i = 0; i < 32; ++i) {
      const int bits = low[j / 2 * 32 + i] >> (j % 2 * 4) & 15;
      const int fifth = high == nullptr ? 0 : (high[i] >> j & 1) << 4;
      to[j * 32 + i] = d * static_cast<float>(bits | fifth) - m;
    }
  }
}

void q4_k(Bytes block, float* to) {
  runs_of_32(block, nullptr, block + 16, to);
}

void q5_k(Bytes block, float* to) {
  runs_of_32(block, block + 16, block + 48, to);
}

// Sixteen runs of 16: 128 bytes of low bits, 64 of two high bits, 16 scales, a scale of them.
void q6_k(Bytes block, float* to) {
  for (int n = 0; n < 256; ++n) {
    const int half = n / 128, part = n % 128 / 32, i = n % 32;
    const int low = block[half * 64 + part % 2 * 32 + i] >> (part / 2 * 4) & 15;
    const int high = block[128 + half * 32 + i] >> (2 * part) & 3;
    const float scale =
        half_at(block + 208) * static_cast<float>(static_cast<std::int8_t>(block[192 + n / 16]));
    to[n] = scale * static_cast<float>((low | high << 4) - 32);
  }
}

using Decode = void (*)(Bytes, float*);

Decode decoder_of(std::string_view name) {
  return name == "Q8_0"   ? q8_0
         : name == "Q4_0" ? q4_0
         : name == "Q4_1" ? q4_1
         : name == "Q5_0" ? q5_0
         : name == "Q5_1" ? q5_1
         : name == "Q4_K" ? q4_k
         : name == "Q5_K" ? q5_k
                          : q6_k;
}

void put_half(float value, char* to) {
  const c10::Half half = value;
  std::memcpy(to, &half, sizeof half);
}

void to_q8_0(const float* from, char* block) {
  float largest = 0;
  for (int i = 0; i < 32; ++i) largest = std::max(largest, std::abs(from[i]));
  const float d = largest / 127, inverse = d == 0 ? 0 : 1 / d;
  put_half(d, block);
  for (int i = 0; i < 32; ++i) block[2 + i] = static_cast<char>(std::round(from[i] * inverse));
}

// The number of the largest magnitude, with its sign, becomes -8.
void to_q4_0(const float* from, char* block) {
  const float largest =
      *std::max_element(from, from + 32, [](float a, float b) { return std::abs(a) < std::abs(b); });
  const float d = largest / -8, inverse = d == 0 ? 0 : 1 / d;
  put_half(d, block);
  const auto bits = [&](int i) { return std::min(15, static_cast<int>(from[i] * inverse + 8.5F)); };
  for (int i = 0; i < 16; ++i) block[2 + i] = static_cast<char>(bits(i) | bits(i + 16) << 4);
}

constexpr std::int64_t kGrain = 1 << 12;  // numbers worth a thread

}  // namespace

at::Tensor dequantized(const GgufType& type, const std::byte* blocks,
                       const std::vector<std::int64_t>& shape) {
  at::Tensor tensor = at::empty(shape, at::kFloat);
  float* to = tensor.mutable_data_ptr<float>();
  const Decode decode = decoder_of(type.name);
  const auto block = static_cast<std::int64_t>(type.block);
  at::parallel_for(0, tensor.numel() / block, kGrain / 32, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      decode(reinterpret_cast<Bytes>(blocks) + i * static_cast<std::int64_t>(type.bytes), to + i * block);
  });
  return tensor;
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
