#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <immintrin.h>

#include "models/kernels/vector.h"

// AMX (Intel's Architecture Instruction Set Extensions): products of tiles of 16 rows and 16 words by tiles
// of 16 words and 16 columns, as panels hold them. A word is two bfloat16 or four bytes.
//
// Sums of bfloat16 are in the order that the instructions prescribe: for each 16 words, one sum of the
// products of the words' low halves and one of the high ones, added, then added to the tile. They do not
// depend on the number of rows.
namespace zoo::kernels {

// Of functions that use tiles: only a CPU with AMX runs them.
#define ZOO_AMX __attribute__((target("amx-tile,amx-bf16,amx-int8")))

constexpr std::size_t kTileSide = 16;  // rows, words or columns of a tile

/// Shapes of the tiles in the processor's format: 0 to 3 sum vectors of columns, 4 holds rows, 5 columns; 6
/// and 7 are the same for the last words of the depth.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};

  ZOO_INLINE TileShapes(std::size_t height, std::size_t last_words) {
    for (std::size_t tile = 0; tile < 5; ++tile) set(tile, height, kTileSide);
    set(5, kTileSide, kTileSide);
    if (last_words == 0) return;
    set(6, height, last_words);
    set(7, last_words, kTileSide);
  }
  ZOO_INLINE void set(std::size_t tile, std::size_t height, std::size_t words) {
    rows[tile] = static_cast<std::uint8_t>(height);
    row_bytes[tile] = static_cast<std::uint16_t>(words * 4);
  }
};

// GCC does not know that the intrinsics of tiles access memory: a compiler barrier.
ZOO_INLINE void settle() { asm volatile("" ::: "memory"); }

/// Shapes the tiles when rows begin whose number or last words differ from those before, and frees them at
/// the end.
class ShapedTiles {
 public:
  explicit ZOO_INLINE ShapedTiles(std::size_t words) { set_words(words); }
  ZOO_INLINE ShapedTiles(const ShapedTiles&) = delete;
  ZOO_INLINE ShapedTiles& operator=(const ShapedTiles&) = delete;
  ZOO_AMX ZOO_INLINE ~ShapedTiles() { _tile_release(); }

  ZOO_INLINE void set_words(std::size_t words) {
    last_words_ = words % kTileSide;
    height_ = 0;
  }
  ZOO_AMX ZOO_INLINE void set_height(std::size_t height) {
    if (height == height_) return;
    height_ = height;
    const TileShapes shapes(height, last_words_);
    settle();
    _tile_loadconfig(&shapes);
  }

 private:
  std::size_t last_words_ = 0, height_ = 0;
};

/// Rows of words by panels of words; strides are in bytes.
struct TileProduct {
  const void* rows;
  std::size_t row;
  const void* columns;
  std::size_t depth;  // between the columns' words
  std::size_t words;
  // What is needed later, brought to the L2 cache: this many lines for each 16 words.
  const std::byte* later = nullptr;
  std::size_t later_lines = 0;
};

/// Transposes 16 columns of words, whose rows are `stride` words apart, for a left factor: rows [16, words],
/// `row` words apart.
ZOO_INLINE void turn(const std::uint32_t* from, std::size_t stride, std::size_t words, std::uint32_t* rows,
                     std::size_t row) {
  for (std::size_t word = 0; word < words; word += kLanes) {
    Lanes block[kLanes] = {};
    for (std::size_t i = 0; i < kLanes && word + i < words; ++i) block[i] = load(from + (word + i) * stride);
    transpose(block);
    for (std::size_t r = 0; r < kLanes; ++r) store(rows + r * row + word, block[r]);
  }
}

struct Bfloat16Tiles {};
struct ByteTiles {};  // signed rows, unsigned columns

#define ZOO_ADD_TILE(sums, rows, columns)                                             \
  if constexpr (V > sums) {                                                           \
    _tile_loadd(columns, right + sums * 64, p.depth);                                 \
    if constexpr (std::is_same_v<Type, ByteTiles>) _tile_dpbsud(sums, rows, columns); \
    else _tile_dpbf16ps(sums, rows, columns);                                         \
  }

/// Adds the products of rows and V vectors of columns to tiles 0 to V - 1.
template <class Type, std::size_t V> ZOO_AMX ZOO_INLINE void add_tiles(const TileProduct& p) {
  const auto *left = static_cast<const std::byte*>(p.rows), *right = static_cast<const std::byte*>(p.columns);
  const std::byte* later = p.later;
  std::size_t words = p.words;
  for (; words >= kTileSide; words -= kTileSide, left += kTileSide * 4, right += kTileSide * p.depth) {
    _tile_loadd(4, left, p.row);
    ZOO_ADD_TILE(0, 4, 5)
    ZOO_ADD_TILE(1, 4, 5)
    ZOO_ADD_TILE(2, 4, 5)
    ZOO_ADD_TILE(3, 4, 5)
    for (std::size_t i = 0; i < p.later_lines; ++i, later += 64) __builtin_prefetch(later, 0, 2);
  }
  if (words == 0) return;
  _tile_loadd(6, left, p.row);
  ZOO_ADD_TILE(0, 6, 7)
  ZOO_ADD_TILE(1, 6, 7)
  ZOO_ADD_TILE(2, 6, 7)
  ZOO_ADD_TILE(3, 6, 7)
}
#undef ZOO_ADD_TILE

template <std::size_t V> ZOO_AMX ZOO_INLINE void clear_tiles() {
  _tile_zero(0);
  if constexpr (V > 1) _tile_zero(1);
  if constexpr (V > 2) _tile_zero(2);
  if constexpr (V > 3) _tile_zero(3);
}

/// Writes tiles 0 to V - 1 side by side.
template <std::size_t V> ZOO_AMX ZOO_INLINE void store_tiles(void* sums, std::size_t row_bytes) {
  auto* to = static_cast<std::byte*>(sums);
  _tile_stored(0, to, row_bytes);
  if constexpr (V > 1) _tile_stored(1, to + 64, row_bytes);
  if constexpr (V > 2) _tile_stored(2, to + 128, row_bytes);
  if constexpr (V > 3) _tile_stored(3, to + 192, row_bytes);
  settle();
}

}  // namespace zoo::kernels
