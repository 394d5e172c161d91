#include "models/kernels/training/split_product.h"

#include <sys/mman.h>

#include "models/kernels/aligned_memory.h"
#include "models/kernels/amx.h"
#include "models/kernels/tile.h"
#include "models/kernels/training/finish_rows.h"

namespace zoo::kernels::ZOO_KERNELS_FOR {
namespace {

constexpr std::size_t kParts = 3, kTileBytes = 1024, kStep = 2 * kTileSide;  // of the depth, in a tile
static_assert(kSplitSide == 2 * kTileSide);

// Packed columns wait in the L3 cache, a block of packed rows in the L2 cache.
constexpr std::size_t kSplitDepth = 512, kSplitRows = 4 * kSplitSide, kSplitColumns = 48 * kSplitSide;

// Bytes of 16 packed lines.
constexpr std::size_t line_bytes(std::size_t depth) {
  return (depth + kStep - 1) / kStep * kParts * kTileBytes;
}

// 6 MB of each thread, in large pages: with small ones most of the time goes to finding addresses, above all
// in virtual machines.
class SplitMemory {
 public:
  ZOO_INLINE SplitMemory() {
#ifdef MADV_HUGEPAGE
    ::madvise(memory_.get(), kSize, MADV_HUGEPAGE);
#endif
  }
  ZOO_INLINE std::byte* rows() const { return memory_.get(); }
  ZOO_INLINE std::byte* columns() const { return memory_.get() + kRows; }

 private:
  static constexpr std::size_t kPage = std::size_t{2} << 20;
  static constexpr std::size_t kRows = kSplitRows / kTileSide * line_bytes(kSplitDepth);
  static constexpr std::size_t kColumns = kSplitColumns / kTileSide * line_bytes(kSplitDepth);
  static constexpr std::size_t kSize = (kRows + kColumns + kPage - 1) / kPage * kPage;
  AlignedMemory<std::byte, kPage> memory_{kSize};
};

// The rows of a left factor, or the columns of a right one: number k of line i is at data[i * line + k *
// step].
struct Lines {
  const float* data;
  std::size_t line, step, count;
  bool right;
};

// Loads at most a vector; from an absent row: zeros.
ZOO_INLINE Lanes load_of(const float* from, bool present, std::size_t count) {
  return present ? load_up_to(from, count) : Lanes{};
}

// Packs one step of 16 lines from `first` on, in three tiles; missing lines and the end of the depth as
// zeros. A word holds numbers i and i + 16 of the step. Rows of a tile are lines or, of a right factor,
// words. `Along`: a line's numbers are side by side.
template <bool Along>
ZOO_INLINE void pack_step(const Lines& lines, std::size_t first, std::size_t k, std::size_t depth,
                          std::byte* to) {
  const std::size_t count = lines.count > first ? lines.count - first : 0, left = depth - k;
  const std::size_t row = Along ? lines.line : lines.step, later = Along ? kTileSide : kTileSide * row;
  const float* from = lines.data + first * lines.line + k * lines.step;
  const float* ahead = from + 2 * kStep * lines.step;
  const auto pack = [&](std::size_t i, Lanes low, Lanes high) __attribute__((always_inline)) {
    __builtin_prefetch(ahead + i * row);
    __builtin_prefetch(ahead + i * row + later);
    for (std::size_t part = 0; part < kParts; ++part) {
      const Words words = zip(low, high);
      store(to + part * kTileBytes + i * sizeof(Words), words);
      low -= low_half(words);
      high -= high_half(words);
    }
  };
  if (count >= kTileSide && left >= kStep) {
    for (std::size_t i = 0; i < kTileSide; ++i, from += row) pack(i, load(from), load(from + later));
  } else {
    for (std::size_t i = 0; i < kTileSide; ++i, from += row) {
      if constexpr (Along)
        pack(i, load_of(from, i < count, left),
             load_of(from + later, i < count && left > kTileSide, left - kTileSide));
      else pack(i, load_of(from, i < left, count), load_of(from + later, i + kTileSide < left, count));
    }
  }
  for (std::size_t part = 0; part < kParts && Along == lines.right; ++part) {
    Lanes tile[kTileSide];
    std::memcpy(tile, to + part * kTileBytes, kTileBytes);
    transpose(tile);
    std::memcpy(to + part * kTileBytes, tile, kTileBytes);
  }
}

// Packs lines as whole pairs of tiles, [tile's lines, step, part, tile], in the order in which they lie in
// memory.
void pack_block(const Lines& lines, std::size_t depth, std::byte* to) {
  const std::size_t tiles = (lines.count + kSplitSide - 1) / kSplitSide * 2, line = line_bytes(depth);
  const auto step = [&](std::size_t i, std::size_t k) {
    return to + i * line + k / kStep * kParts * kTileBytes;
  };
  if (lines.step == 1) {
    for (std::size_t i = 0; i < tiles; ++i)
      for (std::size_t k = 0; k < depth; k += kStep)
        pack_step<true>(lines, i * kTileSide, k, depth, step(i, k));
  } else {
    for (std::size_t k = 0; k < depth; k += kStep)
      for (std::size_t i = 0; i < tiles; ++i) pack_step<false>(lines, i * kTileSide, k, depth, step(i, k));
  }
  settle();
}

// sums [32, 32] = the products of a pair of packed rows' tiles and a pair of columns' tiles.
ZOO_AMX void multiply_tiles(const std::byte* rows, const std::byte* columns, std::size_t depth, float* sums) {
  enum Part { kHigh, kMiddle, kLow };
  const std::size_t line = line_bytes(depth);
#define ZOO_LOAD(first, second, from, part)           \
  _tile_loadd(first, (from) + (part)*kTileBytes, 64); \
  _tile_loadd(second, (from) + line + (part)*kTileBytes, 64);
#define ZOO_ADD            \
  _tile_dpbf16ps(0, 4, 6); \
  _tile_dpbf16ps(1, 4, 7); \
  _tile_dpbf16ps(2, 5, 6); \
  _tile_dpbf16ps(3, 5, 7);
  clear_tiles<4>();
  for (std::size_t k = 0; k < depth;
       k += kStep, rows += kParts * kTileBytes, columns += kParts * kTileBytes) {
    ZOO_LOAD(4, 5, rows, kHigh)
    ZOO_LOAD(6, 7, columns, kLow)
    ZOO_ADD
    ZOO_LOAD(6, 7, columns, kMiddle)
    ZOO_ADD
    ZOO_LOAD(6, 7, columns, kHigh)
    ZOO_ADD
    ZOO_LOAD(4, 5, rows, kLow)
    ZOO_ADD
    ZOO_LOAD(4, 5, rows, kMiddle)
    ZOO_ADD
    ZOO_LOAD(6, 7, columns, kMiddle)
    ZOO_ADD
  }
#undef ZOO_ADD
#undef ZOO_LOAD
  constexpr std::size_t kRow = kSplitSide * sizeof(float);
  store_tiles<2>(sums, kRow);
  _tile_stored(2, sums + kTileSide * kSplitSide, kRow);
  _tile_stored(3, sums + kTileSide * kSplitSide + kTileSide, kRow);
  settle();
}

// Part of the depth, and a pair of tiles of the result.
struct Place {
  std::size_t first, depth, row, rows, column, columns;
};

template <std::size_t V> void end_tiles(const MatrixProduct& p, const Place& at, const float* sums) {
  const ColumnMask<V> mask(at.columns);
  const bool begins = at.first == 0 && !p.adds;
  const float* more = begins ? p.addend : p.result;
  for_rows<4>(0, at.rows, [&](auto height, std::size_t r) {
    constexpr std::size_t R = decltype(height)::value;
    const std::size_t place = (at.row + r) * p.result_row + at.column;
    Lanes tile[R][V];
    begin_sums(mask, begins && p.bias != nullptr ? p.bias + at.column : nullptr, tile);
    add_rows(ColumnMask<V>(V * kLanes), sums + r * kSplitSide, kSplitSide, tile);
    if (more != nullptr) add_rows(mask, more + place, p.result_row, tile);
    write_rows(mask, p.result + place, p.result_row, tile);
  });
  if (at.first + at.depth == p.depth) finish_rows(p, at.row, at.row + at.rows, at.column, at.columns);
}

// Calls f(first, size) for parts of [begin, end).
template <class F> void for_parts(std::size_t begin, std::size_t end, std::size_t most, const F& f) {
  for (std::size_t i = begin; i < end; i += most) f(i, smaller(end - i, most));
}

}  // namespace

ZOO_AMX void multiply_split(const MatrixProduct& p, const Region& region) {
  static thread_local const SplitMemory memory;
  const TileShapes shapes(kTileSide, kTileSide);
  settle();
  _tile_loadconfig(&shapes);
  for_parts(region.first_column, region.last_column, kSplitColumns, [&](std::size_t left, std::size_t width) {
    for_parts(0, p.depth, kSplitDepth, [&](std::size_t first, std::size_t depth) {
      pack_block({p.b.data + first * p.b.row + left * p.b.column, p.b.column, p.b.row, width, true}, depth,
                 memory.columns());
      for_parts(region.first_row, region.last_row, kSplitRows, [&](std::size_t top, std::size_t height) {
        if (p.upper_only && top >= left + width) return;
        pack_block({p.a.data + top * p.a.row + first * p.a.column, p.a.row, p.a.column, height, false}, depth,
                   memory.rows());
        for_parts(0, width, kSplitSide, [&](std::size_t column, std::size_t columns) {
          for_parts(0, height, kSplitSide, [&](std::size_t row, std::size_t rows) {
            if (p.upper_only && top + row > left + column) return;
            alignas(64) float sums[kSplitSide * kSplitSide];
            const std::size_t line = line_bytes(depth) / kTileSide;
            for (std::size_t r = 0; r < rows; ++r)
              for (std::size_t c = 0; c < columns; c += kLanes)
                __builtin_prefetch(p.result + (top + row + r) * p.result_row + left + column + c, 1);
            multiply_tiles(memory.rows() + row * line, memory.columns() + column * line, depth, sums);
            const Place at{first, depth, top + row, rows, left + column, columns};
            if (columns > kLanes) end_tiles<2>(p, at, sums);
            else end_tiles<1>(p, at, sums);
          });
        });
      });
    });
  });
  _tile_release();
}

}  // namespace zoo::kernels::ZOO_KERNELS_FOR
