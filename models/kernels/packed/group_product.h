// Products with weights whose groups of inputs have steps of their own: int4, and the blocks of files.

// The steps of vector v of a panel's outputs, in 16 bits each from `steps` on. add() returns a group's part
// of the results: `total` is the sum of the products of its numbers and a row's, `sum` the sum of the row's
// numbers, and `units` the value of one of them.

// kInt4: a scale and a zero point.
struct ZeroSteps {
  static constexpr std::size_t kBytes = 2;
  Lanes scales, zeros;

  ZOO_INLINE ZeroSteps(const std::byte* steps, std::size_t v) {
    const Words both = widened(load<Halves>(steps + v * sizeof(Halves)));
    scales = bits<Lanes>((both & 0xFFF0U) << 15);
    zeros = converted<Lanes>(bits<IntegerLanes>(both & 15U));
  }
  ZOO_INLINE Lanes add(const IntegerLanes& total, std::int32_t sum, float units) const {
    return (converted<Lanes>(total) - zeros * static_cast<float>(sum)) * (scales * units);
  }
};

// Converts float16 by moving its exponent into a float's. The numbers are finite.
ZOO_INLINE Lanes load_float16(const std::byte* from) {
  const Words halves = widened(load<Halves>(from));
  const Lanes positive = bits<Lanes>((halves & 0x7FFFU) << 13) * 0x1p112F;
  return bits<Lanes>(bits<Words>(positive) | (halves & 0x8000U) << 16);
}

// Blocks whose zero point is the same everywhere.
template <int Zero> struct ScaleSteps {
  static constexpr std::size_t kBytes = 2;
  Lanes scales;

  ZOO_INLINE ScaleSteps(const std::byte* steps, std::size_t v)
      : scales(load_float16(steps + v * sizeof(Halves))) {}
  ZOO_INLINE Lanes add(const IntegerLanes& total, std::int32_t sum, float units) const {
    return converted<Lanes>(total - Zero * sum) * (scales * units);
  }
};

// Blocks with a minimum; `Taken` was subtracted from each number.
template <int Taken> struct MinimumSteps {
  static constexpr std::size_t kBytes = 4;
  Lanes scales, minimums;

  ZOO_INLINE MinimumSteps(const std::byte* steps, std::size_t v)
      : scales(load_float16(steps + v * sizeof(Halves))),
        minimums(load_float16(steps + (kPanelVectors + v) * sizeof(Halves))) {}
  ZOO_INLINE Lanes add(const IntegerLanes& total, std::int32_t sum, float units) const {
    return converted<Lanes>(total + Taken * sum) * (scales * units) -
           minimums * (static_cast<float>(sum) * units);
  }
};

// Groups of `Inputs` inputs with numbers of `Bits` bits. A step of `Dot` takes `Word` of them.
template <class UsedDot, class UsedSteps, std::size_t Inputs, std::size_t Word, std::size_t Bits>
struct Groups {
  using Dot = UsedDot;
  using Steps = UsedSteps;
  using Unpacked = Groups<SmallByteDot, UsedSteps, Inputs, 8, Bits>;
  static constexpr std::size_t kInputs = Inputs, kWord = Word, kWords = Inputs / Word;
  static constexpr std::size_t kStepsAt = Inputs * kPanelOutputs * Bits / 8;
  static constexpr std::size_t kBytes = kStepsAt + kPanelOutputs * Steps::kBytes;

  // Sum of a row's numbers that a group multiplies, from those of its runs.
  static ZOO_INLINE std::int32_t sum(const std::int32_t* runs) {
    return Inputs == kRun ? runs[0] : runs[0] + runs[1];
  }
};

template <class Steps> using NibbleGroups = Groups<NibbleDot, Steps, kGroup, 8, 4>;
template <class Steps, std::size_t Inputs> using ByteGroups = Groups<ByteDot, Steps, Inputs, 4, 8>;
using FiveBitGroups = Groups<HighBitsDot<kGroup, 1>, MinimumSteps<0>, kGroup, kGroup, 5>;
using SixBitGroups = Groups<HighBitsDot<kRun, 2>, ScaleSteps<32>, kRun, kRun, 6>;
static_assert(HighBitsDot<kRun, 2>::kPlane == kPanelVectors * sizeof(Words));

// Some groups of a panel; parts after the first add to the result.
struct GroupPart {
  const std::byte* numbers;
  std::size_t group_bytes, depth;  // bytes between the numbers of two groups, and of two steps of a dot
  const std::byte* steps;          // Group::kBytes between those of two groups
  std::size_t first, count;
  bool last;
};

// results += group i of the part; total(r, j) are the sums of its products.
template <class Group, std::size_t R, std::size_t V, class Totals>
ZOO_INLINE void add_group(const PackedProduct& p, const GroupPart& part, std::size_t i, std::size_t v,
                          std::size_t row, const Totals& total, Lanes (&results)[R][V]) {
  const std::size_t input = (part.first + i) * Group::kInputs;
  const std::size_t padded = (p.weight->inputs + kGroup - 1) / kGroup * kGroup;
  std::int32_t row_sums[R];
  float units[R];
  for (std::size_t r = 0; r < R; ++r) {
    const std::size_t before = (row + r) * padded + input;
    row_sums[r] = Group::sum(p.rows.sums + before / kRun);
    units[r] = p.rows.scales[before / kGroup];
  }
  for (std::size_t j = 0; j < V; ++j) {
    const typename Group::Steps steps(part.steps + i * Group::kBytes, v + j);
    for (std::size_t r = 0; r < R; ++r) results[r][j] += steps.add(total(r, j), row_sums[r], units[r]);
  }
}

template <class Group, std::size_t R, std::size_t V>
ZOO_INLINE void tile_groups(const PackedProduct& p, const GroupPart& part, std::size_t v, std::size_t row,
                            std::size_t column) {
  using Dot = typename Group::Dot;
  Lanes results[R][V];
  begin_part(p, part.first == 0, row, column, results);
  for (std::size_t i = 0; i < part.count; ++i) {
    typename Dot::Sums sums[R][V] = {};
    add_products<Dot, kPrefetch<R>>(
        {.rows = p.rows.data + row * p.rows.row_bytes + (part.first + i) * Group::kInputs,
         .row = p.rows.row_bytes,
         .word = Group::kWord,
         .columns = part.numbers + i * part.group_bytes + v * Dot::kBytes,
         .depth = part.depth,
         .words = Group::kWords},
        sums);
    add_group<Group>(
        p, part, i, v, row, [&](std::size_t r, std::size_t j) { return Dot::total(sums[r][j]); }, results);
  }
  end_part(p, part.last, row, column, results);
}

// Computes vectors [first, last) of a panel whose first column is `panel_column`, for all rows.
template <class Group>
void multiply_part(const PackedProduct& p, const GroupPart& part, std::size_t panel_column, std::size_t first,
                   std::size_t last) {
  for_rows<Group::Dot::kTallest>(0, p.row_count, [&](auto tall, std::size_t row) {
    // Registers hold the sums of a group and those of all groups.
    constexpr std::size_t R = decltype(tall)::value, kWidest = kWidestTile<(R == 1 ? 1 : 2 * R)>;
    for_vectors<kWidest>(first, last, [&](auto vectors, std::size_t v) {
      tile_groups<Group, R, decltype(vectors)::value>(p, part, v, row, panel_column + v * kLanes);
    });
  });
}

// Writes the numbers of vectors [first, last) of a group as bytes: kPanelOutputs words for each four inputs.
template <class Group>
void unpack_group(const std::byte* group, std::size_t first, std::size_t last, std::byte* numbers) {
  using Dot = typename Group::Dot;
  constexpr std::size_t kPlane = SmallByteDot::kPlane;
  for (std::size_t v = first; v < last; ++v) {
    const auto write = [&](std::size_t word, const Words& bytes) {
      store(numbers + word * kPlane + v * sizeof(Words), bytes);
    };
    const std::byte* from = group + v * sizeof(Words);
    if constexpr (std::is_same_v<Dot, NibbleDot>) {
      for (std::size_t word = 0; word < Group::kWords; ++word) {
        const auto columns = Dot::load(from + word * kPlane);
        write(2 * word, columns.low);
        write(2 * word + 1, columns.high);
      }
    } else {
      const auto columns = Dot::load(from);
      for (std::size_t word = 0; word < Group::kInputs / 4; ++word) write(word, columns.of[word]);
    }
  }
}

// Calls f(part of the panel) for parts of at most `Inputs` inputs whose numbers are bytes, for all rows: as
// many as stay in the L1 cache.
template <class Group, std::size_t Inputs, class F>
ZOO_INLINE void for_unpacked(const std::byte* panel, std::size_t groups, std::size_t first, std::size_t last,
                             const F& f) {
  constexpr std::size_t kGroups = Inputs / Group::kInputs, kBytes = Group::kInputs * kPanelOutputs,
                        kPlane = SmallByteDot::kPlane;
  constexpr bool kAreBytes = std::is_same_v<typename Group::Dot, ByteDot>;
  alignas(64) std::byte numbers[kAreBytes ? 1 : kGroups * kBytes];
  for (std::size_t group = 0; group < groups; group += kGroups, panel += kGroups * Group::kBytes) {
    const std::size_t here = smaller(groups - group, kGroups);
    GroupPart part{panel, Group::kBytes,         2 * kPlane, panel + Group::kStepsAt, group,
                   here,  group + here == groups};
    if constexpr (!kAreBytes) {
      for (std::size_t i = 0; i < here; ++i)
        unpack_group<Group>(panel + i * Group::kBytes, first, last, numbers + i * kBytes);
      part.numbers = numbers;
      part.group_bytes = kBytes;
    }
    f(part);
  }
}

#if defined(__AMX_TILE__)
// Inputs whose numbers are unpacked at a time: they stay in the L2 cache while rows pass.
constexpr std::size_t kUnpackedInputs = 2048;

// The same numbers as without AMX.
template <class Group, std::size_t V>
void tile_groups_by_amx(const PackedProduct& p, const GroupPart& part, std::size_t v,
                        std::size_t panel_column) {
  constexpr std::size_t kWords = Group::kInputs / 4;
  const std::size_t column = panel_column + v * kLanes;
  const ColumnMask<V> whole(V * kLanes);
  ShapedTiles tiles(kWords);
  TileSums<V> totals, products[kGroupsAtOnce];
  for_tall_tiles(p.row_count, [&](std::size_t row, std::size_t height) {
    tiles.set_height(height);
    for (std::size_t first = 0; first < part.count; first += kGroupsAtOnce) {
      const std::size_t last = smaller(first + kGroupsAtOnce, part.count);
      for (std::size_t i = first; i < last; ++i) {
        clear_tiles<V>();
        add_tiles<ByteTiles, V>({p.rows.data + row * p.rows.row_bytes + (part.first + i) * Group::kInputs,
                                 p.rows.row_bytes, part.numbers + i * part.group_bytes + v * sizeof(Words),
                                 SmallByteDot::kPlane, kWords});
        store_tiles<V>(products[i - first].of, V * sizeof(Words));
      }
      for_rows<4>(0, height, [&](auto tall, std::size_t top) {
        Lanes results[decltype(tall)::value][V];
        float* kept = totals.of + top * totals.kRow;
        if (first == 0) begin_part(p, part.first == 0, row + top, column, results);
        else read_rows(whole, kept, totals.kRow, results);
        for (std::size_t i = first; i < last; ++i) {
          const float* from = products[i - first].of + top * totals.kRow;
          add_group<Group>(
              p, part, i, v, row + top,
              [&](std::size_t r, std::size_t j) {
                return kernels::load<IntegerLanes>(from + r * totals.kRow + j * kLanes);
              },
              results);
        }
        if (last == part.count) end_part(p, part.last, row + top, column, results);
        else write_rows(whole, kept, totals.kRow, results);
      });
    }
  });
}
#endif

// From this many rows on, unpacking numbers beforehand pays off.
constexpr std::size_t kManyRows = 4 * kTallTile;

template <class Group>
void multiply_groups(const PackedProduct& p, const std::byte* panel, std::size_t panel_column,
                     std::size_t first, std::size_t last) {
  const std::size_t groups = (p.weight->inputs + Group::kInputs - 1) / Group::kInputs;
#if defined(__AMX_TILE__)
  if constexpr (Group::kInputs == kGroup)  // runs would leave most of a tile empty
    if (p.row_count >= 2 * kTallEnough)
      return for_unpacked<Group, kUnpackedInputs>(panel, groups, first, last, [&](const GroupPart& part) {
        for_vectors<kPanelVectors>(first, last, [&](auto vectors, std::size_t v) {
          tile_groups_by_amx<Group, decltype(vectors)::value>(p, part, v, panel_column);
        });
      });
#endif
  if constexpr (Group::kWord == Group::kInputs)  // of five or six bits
    if (p.row_count >= kManyRows)
      return for_unpacked<Group, 256>(panel, groups, first, last, [&](const GroupPart& part) {
        multiply_part<typename Group::Unpacked>(p, part, panel_column, first, last);
      });
  const GroupPart whole{panel,  Group::kBytes, kPanelVectors * sizeof(Words), panel + Group::kStepsAt, 0,
                        groups, true};
  multiply_part<Group>(p, whole, panel_column, first, last);
}

void multiply_blocks(const PackedProduct& p, const BlockPanel& panel, std::size_t panel_column,
                     std::size_t first, std::size_t last) {
  constexpr int kTaken = ByteDot::kTaken;
  if (panel.format == BlockFormat::kNibbles) {
    multiply_groups<NibbleGroups<ScaleSteps<8>>>(p, panel.data, panel_column, first, last);
  } else if (panel.format == BlockFormat::kNibblesMinimum) {
    multiply_groups<NibbleGroups<MinimumSteps<0>>>(p, panel.data, panel_column, first, last);
  } else if (panel.format == BlockFormat::kBytes) {
    multiply_groups<ByteGroups<ScaleSteps<128 - kTaken>, kGroup>>(p, panel.data, panel_column, first, last);
  } else if (panel.format == BlockFormat::kFiveBits) {
    multiply_groups<FiveBitGroups>(p, panel.data, panel_column, first, last);
  } else if (panel.format == BlockFormat::kSixBits) {
    multiply_groups<SixBitGroups>(p, panel.data, panel_column, first, last);
  } else {
    multiply_groups<ByteGroups<MinimumSteps<kTaken>, kRun>>(p, panel.data, panel_column, first, last);
  }
}

void multiply_panels(const PackedProduct& p, std::size_t first, std::size_t last) {
  const PackedWeight& weight = *p.weight;
  const std::size_t bytes = panel_bytes(weight.type, weight.inputs);
  while (first < last) {
    const std::size_t panel = first / kPanelOutputs, panel_column = panel * kPanelOutputs;
    const std::size_t end = smaller(last, panel_column + kPanelOutputs);
    const std::size_t v = (first - panel_column) / kLanes, v_end = (end - panel_column + kLanes - 1) / kLanes;
    const std::byte* data = weight.panels + panel * bytes;
    if (weight.type == WeightType::kBlocks) {
      multiply_blocks(p, weight.blocks[panel], panel_column, v, v_end);
    } else if (weight.type == WeightType::kFloat32) {
      multiply_floats<FloatDot>(p, data, panel_column, v, v_end);
    } else if (is_for_amx(p)) {
      multiply_by_amx(p, data, panel_column, v, v_end, end < last ? data + bytes : nullptr);
    } else if (weight.type == WeightType::kBfloat16) {
      multiply_floats<Bfloat16Dot>(p, data, panel_column, v, v_end);
    } else if (weight.type == WeightType::kInt8) {
      multiply_int8(p, data, panel_column, v, v_end);
    } else {
      multiply_groups<NibbleGroups<ZeroSteps>>(p, data, panel_column, v, v_end);
    }
    first = end;
  }
}

// Rows that pass over all panels together: with AMX, as many as stay in the L2 cache beside a panel.
ZOO_INLINE std::size_t rows_at_once(const PackedProduct& p) {
  constexpr std::size_t kBytes = std::size_t{1} << 20, kLeast = 64;
  if (!is_for_amx(p)) return p.row_count;
  const std::size_t rows = kBytes / p.rows.row_bytes / kLeast * kLeast;
  return rows > kLeast ? rows : kLeast;
}

void multiply(const PackedProduct& p, std::size_t first, std::size_t last) {
  const std::size_t count = rows_at_once(p);
  for (std::size_t row = 0; row < p.row_count; row += count) {
    PackedProduct part = p;
    part.rows.data += row * p.rows.row_bytes;
    part.rows.scales += row * scales_in_row(p.rows.type, p.weight->inputs);
    part.rows.sums += row * sums_in_row(p.rows.type, p.weight->inputs);
    part.result += row * p.result_row;
    part.row_count = smaller(p.row_count - row, count);
    multiply_panels(part, first, last);
  }
}
