// Products with packed weights (inference_kernels.h: PackedProduct).

constexpr std::size_t kPanelVectors = kPanelOutputs / kLanes;

/// V vectors of the result; the first `columns` elements count, all but some of the last vector's.
template <std::size_t V>
struct Place {
  bool whole;
  std::size_t tail;

  explicit ZOO_INLINE Place(std::size_t columns)
      : whole(columns >= V * kLanes), tail((columns - 1) % kLanes + 1) {}
  ZOO_INLINE Lanes read(const float* from, std::size_t v) const {
    return whole || v + 1 < V ? load(from + v * kLanes) : load_some(from + v * kLanes, tail);
  }
  ZOO_INLINE void write(float* to, std::size_t v, const Lanes& lanes) const {
    if (whole || v + 1 < V) {
      store(to + v * kLanes, lanes);
    } else {
      store_some(to + v * kLanes, lanes, tail);
    }
  }
  template <std::size_t R>
  ZOO_INLINE void read_all(const float* from, std::size_t row, Lanes (&tile)[R][V]) const {
    for (std::size_t r = 0; r < R; ++r)
      for (std::size_t v = 0; v < V; ++v) tile[r][v] = read(from + r * row, v);
  }
  template <std::size_t R>
  ZOO_INLINE void write_all(float* to, std::size_t row, const Lanes (&tile)[R][V]) const {
    for (std::size_t r = 0; r < R; ++r)
      for (std::size_t v = 0; v < V; ++v) write(to + r * row, v, tile[r][v]);
  }
};

ZOO_INLINE Lanes apply(Pointwise f, Lanes x) {
  switch (f) {
    case Pointwise::kNone:
      return x;
    case Pointwise::kRelu:
      return Relu::value(x);
    case Pointwise::kGelu:
      return Gelu::value(x);
    case Pointwise::kGeluTanh:
      return GeluTanh::value(x);
    case Pointwise::kSilu:
      return Silu::value(x);
  }
  return x;
}

// Applies f to a tile of sums; out of line: one call per tile that has an activation.
template <std::size_t R, std::size_t V>
__attribute__((noinline)) void apply_to_tile(Pointwise f, Lanes (&sums)[R][V]) {
  for (std::size_t r = 0; r < R; ++r)
    for (std::size_t v = 0; v < V; ++v) sums[r][v] = apply(f, sums[r][v]);
}

template <std::size_t R, std::size_t V>
ZOO_INLINE void write_tile(const PackedProduct& p, std::size_t row, std::size_t column, Lanes (&sums)[R][V]) {
  const Place<V> place{p.weight->outputs - column};
  if (p.pointwise != Pointwise::kNone) apply_to_tile(p.pointwise, sums);
  place.write_all(p.result + row * p.result_row + column, p.result_row, sums);
}

// Start value of float sums: the bias, plus the result if it is added to.
template <std::size_t R, std::size_t V>
ZOO_INLINE void first_sums(const PackedProduct& p, std::size_t row, std::size_t column, Lanes (&sums)[R][V]) {
  const Place<V> place{p.weight->outputs - column};
  for (std::size_t r = 0; r < R; ++r) {
    const float* result = p.result + (row + r) * p.result_row + column;
    for (std::size_t v = 0; v < V; ++v) {
      sums[r][v] = p.bias != nullptr ? place.read(p.bias + column, v) : Lanes{};
      if (p.adds) sums[r][v] += place.read(result, v);
    }
  }
}

// Some words of a panel's depth; parts after the first add to the result.
struct DepthPart {
  const std::byte* weights;
  std::size_t first_word, words;
  bool last;
};

// Computes vectors [first, last) of a panel whose first column is `panel_column`, for all rows.
template <class Dot>
void multiply_part(const PackedProduct& p, const DepthPart& part, std::size_t panel_column, std::size_t first,
                   std::size_t last) {
  for_vectors(first, last, [&](auto vectors, std::size_t v) {
    constexpr std::size_t V = decltype(vectors)::value;
    const std::size_t column = panel_column + v * kLanes;
    const Place<V> place{p.weight->outputs - column};
    for_rows(p.row_count, [&](auto tall, std::size_t row) {
      constexpr std::size_t R = decltype(tall)::value;
      Lanes sums[R][V];
      if (part.first_word == 0) {
        first_sums(p, row, column, sums);
      } else {
        place.read_all(p.result + row * p.result_row + column, p.result_row, sums);
      }
      const TileInput in{p.rows.data + row * p.rows.row_bytes + part.first_word * 4, p.rows.row_bytes,
                         part.weights + v * sizeof(Words), kPanelVectors * sizeof(Words), part.words};
      add_products<Dot>(in, sums);
      if (part.last) {
        write_tile(p, row, column, sums);
      } else {
        place.write_all(p.result + row * p.result_row + column, p.result_row, sums);
      }
    });
  });
}

template <class Dot>
void multiply_floats(const PackedProduct& p, const std::byte* panel, std::size_t panel_column,
                     std::size_t first, std::size_t last) {
  // This much of a panel stays in the L2 cache while the rows pass.
  constexpr std::size_t kWords = 1024;
  const std::size_t in_word = p.weight->type == WeightType::kFloat32 ? 1 : 2;
  const std::size_t words = (p.weight->inputs + in_word - 1) / in_word;
  for (std::size_t word = 0; word < words; word += kWords) {
    const std::size_t here = words - word < kWords ? words - word : kWords;
    const DepthPart part{panel + word * kPanelVectors * sizeof(Words), word, here, word + here == words};
    multiply_part<Dot>(p, part, panel_column, first, last);
  }
}

void multiply_int8(const PackedProduct& p, const std::byte* panel, std::size_t panel_column,
                   std::size_t first, std::size_t last) {
  const std::size_t words = (p.weight->inputs + 3) / 4;
  for_vectors(first, last, [&](auto vectors, std::size_t v) {
    constexpr std::size_t V = decltype(vectors)::value;
    const std::size_t column = panel_column + v * kLanes;
    for_rows(p.row_count, [&](auto tall, std::size_t row) {
      constexpr std::size_t R = decltype(tall)::value;
      IntegerLanes sums[R][V];
      for (std::size_t r = 0; r < R; ++r)
        for (std::size_t i = 0; i < V; ++i) sums[r][i] = IntegerLanes{} - 128 * p.rows.sums[row + r];
      const TileInput in{p.rows.data + row * p.rows.row_bytes, p.rows.row_bytes, panel + v * sizeof(Words),
                         kPanelVectors * sizeof(Words), words};
      add_products<ByteDot>(in, sums);
      Lanes results[R][V];
      first_sums(p, row, column, results);
      for (std::size_t r = 0; r < R; ++r) {
        for (std::size_t i = 0; i < V; ++i) {
          const Lanes scales = load(p.weight->scales + column + i * kLanes) * p.rows.scales[row + r];
          results[r][i] += __builtin_convertvector(sums[r][i], Lanes) * scales;
        }
      }
      write_tile(p, row, column, results);
    });
  });
}

constexpr std::size_t kGroupWords = kGroup / 8;
constexpr std::size_t kScalesAt = kGroupWords * kPanelOutputs * 4;
constexpr std::size_t kGroupBytes = kScalesAt + kPanelOutputs * sizeof(std::uint16_t);

ZOO_INLINE Lanes load_bfloats(const std::byte* from) {
  using Sixteen = unsigned short __attribute__((vector_size(32)));
  Sixteen halves;
  std::memcpy(&halves, from, sizeof halves);
  return bits<Lanes>(__builtin_convertvector(halves, Words) << 16);
}

template <std::size_t R, std::size_t V>
ZOO_INLINE void tile_int4(const PackedProduct& p, const std::byte* panel, std::size_t v, std::size_t row,
                          std::size_t column) {
  const std::size_t groups = (p.weight->inputs + kGroup - 1) / kGroup;
  Lanes results[R][V];
  first_sums(p, row, column, results);
  for (std::size_t g = 0; g < groups; ++g, panel += kGroupBytes) {
    IntegerLanes sums[R][V];
    for (std::size_t r = 0; r < R; ++r)
      for (std::size_t i = 0; i < V; ++i)
        sums[r][i] = IntegerLanes{} - 8 * p.rows.sums[(row + r) * groups + g];
    for (std::size_t w = 0; w < kGroupWords; ++w) {
      for (std::size_t i = 0; i < V; ++i) {
        const std::byte* at = panel + (w * kPanelVectors + v + i) * sizeof(Words);
        if constexpr (R <= 2) __builtin_prefetch(at + 4096);
        const Words both = load_words(at);
        const Words low = both & 0x0F0F0F0FU, high = both >> 4 & 0x0F0F0F0FU;
        for (std::size_t r = 0; r < R; ++r) {
          const std::byte* row_at = p.rows.data + (row + r) * p.rows.row_bytes + g * kGroup + w * 8;
          sums[r][i] = ByteDot::add(ByteDot::add(sums[r][i], row_at, low), row_at + 4, high);
        }
      }
    }
    for (std::size_t i = 0; i < V; ++i) {
      const Lanes scales = load_bfloats(panel + kScalesAt + (v + i) * kLanes * sizeof(std::uint16_t));
      for (std::size_t r = 0; r < R; ++r) {
        const Lanes both = scales * p.rows.scales[(row + r) * groups + g];
        results[r][i] += __builtin_convertvector(sums[r][i], Lanes) * both;
      }
    }
  }
  write_tile(p, row, column, results);
}

void multiply_int4(const PackedProduct& p, const std::byte* panel, std::size_t panel_column,
                   std::size_t first, std::size_t last) {
  std::size_t row = 0;
  const auto all_vectors = [&](auto tall) {
    constexpr std::size_t R = decltype(tall)::value;
    std::size_t v = first;
    if constexpr (kWideTile > 1) {
      constexpr std::size_t V = R == 1 ? 4 : 2;
      for (; v + V <= last; v += V) tile_int4<R, V>(p, panel, v, row, panel_column + v * kLanes);
    }
    for (; v < last; ++v) tile_int4<R, 1>(p, panel, v, row, panel_column + v * kLanes);
    row += R;
  };
  while (row + 4 <= p.row_count) all_vectors(std::integral_constant<std::size_t, 4>{});
  while (row < p.row_count) all_vectors(std::integral_constant<std::size_t, 1>{});
}

// For many rows: converts part of an int4 panel to bfloat16 at a time, so that it stays in the cache.
void multiply_wide_int4(const PackedProduct& p, const std::byte* panel, std::size_t panel_column,
                        std::size_t first, std::size_t last) {
  constexpr std::size_t kGroups = 32, kPairs = kGroup / 2;
  alignas(64) static thread_local std::byte turned[kGroups * kPairs * kPanelOutputs * 4];
  const std::size_t groups = (p.weight->inputs + kGroup - 1) / kGroup;
  for (std::size_t begin = 0; begin < groups; begin += kGroups) {
    const std::size_t end = groups - begin < kGroups ? groups : begin + kGroups;
    for (std::size_t g = begin; g < end; ++g) {
      const std::byte* group = panel + g * kGroupBytes;
      for (std::size_t v = first; v < last; ++v) {
        const Lanes scales = load_bfloats(group + kScalesAt + v * kLanes * sizeof(std::uint16_t));
        for (std::size_t pair = 0; pair < kPairs; ++pair) {
          const std::size_t word = pair / 4, byte = pair % 2 * 2, high = pair / 2 % 2;
          const Words both = load_words(group + (word * kPanelVectors + v) * sizeof(Words));
          const auto value = [&](std::size_t i) {
            const Words q = both >> static_cast<unsigned>(8 * (byte + i) + 4 * high) & 15U;
            return bits<Words>((__builtin_convertvector(IntegerLanes(q), Lanes) - 8.0F) * scales) + 0x8000U;
          };
          const Words packed = value(0) >> 16 | (value(1) & 0xFFFF0000U);
          std::memcpy(turned + (((g - begin) * kPairs + pair) * kPanelVectors + v) * sizeof packed, &packed,
                      sizeof packed);
        }
      }
    }
    const DepthPart part{turned, begin * kPairs, (end - begin) * kPairs, end == groups};
    multiply_part<BfloatDot>(p, part, panel_column, first, last);
  }
}

void multiply(const PackedProduct& p, std::size_t first, std::size_t last) {
  const PackedWeight& weight = *p.weight;
  const std::size_t bytes = panel_bytes(weight.type, weight.inputs);
  while (first < last) {
    const std::size_t panel = first / kPanelOutputs, panel_column = panel * kPanelOutputs;
    const std::size_t end = last < panel_column + kPanelOutputs ? last : panel_column + kPanelOutputs;
    const std::size_t v = (first - panel_column) / kLanes, v_end = (end - panel_column + kLanes - 1) / kLanes;
    const std::byte* data = weight.panels + panel * bytes;
    if (weight.type == WeightType::kFloat32) {
      multiply_floats<FloatDot>(p, data, panel_column, v, v_end);
    } else if (weight.type == WeightType::kBfloat16) {
      multiply_floats<BfloatDot>(p, data, panel_column, v, v_end);
    } else if (weight.type == WeightType::kInt8) {
      multiply_int8(p, data, panel_column, v, v_end);
    } else if (p.rows.type == WeightType::kInt4) {
      multiply_int4(p, data, panel_column, v, v_end);
    } else {
      multiply_wide_int4(p, data, panel_column, v, v_end);
    }
    first = end;
  }
}
