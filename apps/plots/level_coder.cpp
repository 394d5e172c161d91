#include <algorithm>
#include <array>

#include "apps/plots/attention_maps.h"

namespace zoo {
namespace {

constexpr std::uint16_t kEven = 1024;  // a probability of 1/2, in units of 1/2048

class RangeEncoder {
 public:
  // `zero`: probability of false, which adapts.
  void write(std::uint16_t& zero, bool bit) {
    const std::uint32_t bound = (range_ >> 11) * zero;
    if (bit) {
      low_ += bound;
      range_ -= bound;
      zero = static_cast<std::uint16_t>(zero - (zero >> 4));
    } else {
      range_ = bound;
      zero = static_cast<std::uint16_t>(zero + ((2048 - zero) >> 4));
    }
    for (; range_ < (1U << 24); range_ <<= 8) shift();
  }

  std::string finish() {
    for (int i = 0; i < 5; ++i) shift();
    return std::move(bytes_);
  }

 private:
  // Bytes of 255 wait until it is known whether a carry propagates through them.
  void shift() {
    if (low_ < 0xFF000000U || low_ > 0xFFFFFFFFU) {
      const auto carry = static_cast<char>(low_ >> 32);
      for (; waiting_ > 0; --waiting_) {
        bytes_ += static_cast<char>(first_ + carry);
        first_ = static_cast<char>(0xFF);
      }
      first_ = static_cast<char>(low_ >> 24);
    }
    ++waiting_;
    low_ = (low_ & 0x00FFFFFFU) << 8;
  }

  std::string bytes_;
  std::uint64_t low_ = 0;
  std::uint32_t range_ = 0xFFFFFFFFU;
  char first_ = 0;
  std::size_t waiting_ = 1;
};

// 0, 1, 2 to 7, more.
std::size_t size_of(std::uint8_t level) { return level < 2 ? level : level < 8 ? 2 : 3; }

class LevelEncoder {
 public:
  LevelEncoder() {
    above_0_.fill(kEven);
    above_1_.fill(kEven);
    for (auto& tree : bits_) tree.fill(kEven);
  }

  void write(std::uint8_t level, std::uint8_t left, std::uint8_t above) {
    const std::size_t near = 4 * size_of(left) + size_of(above);
    coder_.write(above_0_[near], level > 0);
    if (level == 0) return;
    coder_.write(above_1_[near], level > 1);
    if (level == 1) return;
    auto& tree = bits_[std::max(size_of(left), size_of(above))];
    std::size_t node = 1;
    for (int bit = 7; bit >= 0; --bit) {
      const bool set = ((level >> bit) & 1) != 0;
      coder_.write(tree[node], set);
      node = 2 * node + (set ? 1 : 0);
    }
  }

  std::string finish() { return coder_.finish(); }

 private:
  RangeEncoder coder_;
  std::array<std::uint16_t, 16> above_0_{}, above_1_{};
  std::array<std::array<std::uint16_t, 256>, 4> bits_{};
};

}  // namespace

std::string encode_levels(std::span<const std::uint8_t> levels, std::size_t rows, std::size_t columns,
                          bool causal) {
  LevelEncoder encoder;
  for (std::size_t begin = 0; begin < levels.size(); begin += rows * columns) {
    for (std::size_t row = 0; row < rows; ++row) {
      const std::uint8_t* const here = levels.data() + begin + row * columns;
      const std::size_t end = causal ? std::min(row + 1, columns) : columns;
      for (std::size_t column = 0; column < end; ++column) {
        const std::uint8_t left = column > 0 ? here[column - 1] : 0;
        encoder.write(here[column], left, row > 0 ? *(here + column - columns) : 0);
      }
    }
  }
  return encoder.finish();
}

}  // namespace zoo
