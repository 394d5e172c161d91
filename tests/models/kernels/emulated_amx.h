#pragma once

// Included before kernels that are compiled to run as on a CPU with AMX, whose instructions are computed here
// by loops, with the bits of Intel's description. Few machines have them. These kernels must define nothing
// that the linker could give to the rest of the program.
#include <cstddef>
#include <cstdint>

#include <immintrin.h>

#include "models/kernels/cpu.h"

namespace {

struct Tile {
  unsigned char bytes[16][64];
};

thread_local Tile tiles[8];
thread_local unsigned char configured[64];

std::size_t rows_of(int tile) { return configured[48 + tile]; }

std::size_t row_bytes_of(int tile) { return configured[16 + 2 * tile] + 256U * configured[17 + 2 * tile]; }

void zero(int tile) { __builtin_memset(&tiles[tile], 0, sizeof(Tile)); }

void load(int tile, const void* from, std::size_t stride) {
  zero(tile);
  for (std::size_t r = 0; r < rows_of(tile); ++r)
    __builtin_memcpy(tiles[tile].bytes[r], static_cast<const char*>(from) + r * stride, row_bytes_of(tile));
}

void store(int tile, void* to, std::size_t stride) {
  for (std::size_t r = 0; r < rows_of(tile); ++r)
    __builtin_memcpy(static_cast<char*>(to) + r * stride, tiles[tile].bytes[r], row_bytes_of(tile));
}

float at(int tile, std::size_t row, std::size_t word) {
  float value;
  __builtin_memcpy(&value, tiles[tile].bytes[row] + 4 * word, 4);
  return value;
}

float half_at(int tile, std::size_t row, std::size_t half) {
  std::uint16_t bits;
  __builtin_memcpy(&bits, tiles[tile].bytes[row] + 2 * half, 2);
  const std::uint32_t word = std::uint32_t{bits} << 16;
  float value;
  __builtin_memcpy(&value, &word, 4);
  return value;
}

// The processor stops a program whose shapes do not fit.
void check(int sums, int a, int b) {
  if (rows_of(sums) != rows_of(a) || row_bytes_of(sums) != row_bytes_of(b) ||
      row_bytes_of(a) != 4 * rows_of(b) || rows_of(a) == 0 || rows_of(b) == 0)
    __builtin_trap();
}

void multiply_bfloats(int sums, int a, int b) {
  check(sums, a, b);
  for (std::size_t row = 0; row < rows_of(sums); ++row) {
    for (std::size_t column = 0; column < row_bytes_of(sums) / 4; ++column) {
      float low = 0, high = 0;
      for (std::size_t pair = 0; pair < rows_of(b); ++pair) {
        low = __builtin_fmaf(half_at(a, row, 2 * pair), half_at(b, pair, 2 * column), low);
        high = __builtin_fmaf(half_at(a, row, 2 * pair + 1), half_at(b, pair, 2 * column + 1), high);
      }
      const float sum = at(sums, row, column) + (low + high);
      __builtin_memcpy(tiles[sums].bytes[row] + 4 * column, &sum, 4);
    }
  }
}

void multiply_bytes(int sums, int a, int b) {
  check(sums, a, b);
  for (std::size_t row = 0; row < rows_of(sums); ++row) {
    for (std::size_t column = 0; column < row_bytes_of(sums) / 4; ++column) {
      std::int32_t sum = 0;
      __builtin_memcpy(&sum, tiles[sums].bytes[row] + 4 * column, 4);
      for (std::size_t k = 0; k < row_bytes_of(a); ++k)
        sum += static_cast<signed char>(tiles[a].bytes[row][k]) * tiles[b].bytes[k / 4][4 * column + k % 4];
      __builtin_memcpy(tiles[sums].bytes[row] + 4 * column, &sum, 4);
    }
  }
}

}  // namespace

#undef _tile_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbf16ps
#undef _tile_dpbsud
#undef _tile_loadconfig
#undef _tile_release
#define _tile_loadd(tile, from, stride) ::load(tile, from, stride)
#define _tile_stored(tile, to, stride) ::store(tile, to, stride)
#define _tile_zero(tile) ::zero(tile)
#define _tile_dpbf16ps(sums, a, b) ::multiply_bfloats(sums, a, b)
#define _tile_dpbsud(sums, a, b) ::multiply_bytes(sums, a, b)
#define _tile_loadconfig(from) __builtin_memcpy(::configured, from, sizeof(::configured))
#define _tile_release() __builtin_memset(::configured, 0, sizeof(::configured))

#if defined(kernels)  // under another name: kernels of training, which ask
namespace zoo::kernels {

inline InstructionSet instruction_set() { return InstructionSet::kAmxBf16; }

}  // namespace zoo::kernels
#endif
