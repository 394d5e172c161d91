// Attention over a head's cache (inference_kernels.h: Attention). Idea: keys and values are stored in panels,
// as packed weights are, so that scores and results are products of tiles (tile.h). A tile of queries makes
// three passes over its positions: scores, softmax, values. Its scores stay in the core's cache.

struct Scores {
  float* data;
  std::size_t row;    // elements between rows
  std::size_t begin;  // first position in them, a multiple of kPanelOutputs
  std::size_t end;    // end of the positions that any row sees
};

// End of the positions that a query sees.
ZOO_INLINE std::size_t visible_to(const Attention& a, std::size_t query) {
  const std::size_t end = a.visible + query * a.growth;
  return a.limit > 0 && end > a.limit ? a.limit : end;
}

ZOO_INLINE std::size_t first_visible(const Attention& a, std::size_t query) {
  const std::size_t end = a.visible + query * a.growth;
  return a.window > 0 && end > a.window ? end - a.window : 0;
}

template <class Dot, std::size_t R>
ZOO_INLINE void score(const Attention& a, const std::byte* queries, std::size_t query_bytes,
                      const Scores& scores) {
  const std::size_t in_word = a.type == WeightType::kFloat32 ? 1 : 2;
  const std::size_t words = (a.head_dim + in_word - 1) / in_word;
  for (std::size_t position = scores.begin; position < scores.end; position += kPanelOutputs) {
    const std::byte* panel = a.cache.keys + position / kPanelOutputs * words * kPanelOutputs * 4;
    const std::size_t seen = smaller(vectors_of(scores.end - position), kPanelVectors);
    for_vectors<kWidestTile<R>>(0, seen, [&](auto vectors, std::size_t v) {
      constexpr std::size_t V = decltype(vectors)::value;
      typename Dot::Sums sums[R][V] = {};
      add_products<Dot, kPrefetch<R>>(
          {queries, query_bytes, 4, panel + v * sizeof(Words), kPanelOutputs * 4, words}, sums);
      write_rows(ColumnMask<V>(V * kLanes), scores.data + position - scores.begin + v * kLanes, scores.row,
                 sums);
    });
  }
}

// Replaces a row's scores by softmax weights not yet divided by their sum, and returns the sum; zeros if the
// row sees nothing.
ZOO_INLINE float softmax(const Attention& a, std::size_t query, float* row, const Scores& scores) {
  const std::size_t first = first_visible(a, query) - scores.begin,
                    last = visible_to(a, query) - scores.begin;
  const float* bias = a.bias != nullptr ? a.bias + static_cast<std::ptrdiff_t>(query) * a.bias_row +
                                              static_cast<std::ptrdiff_t>(scores.begin)
                                        : nullptr;
  const std::size_t end = padded(scores.end - scores.begin);
  Lanes most = all(-__builtin_inff());
  for (std::size_t s = 0; s < end; s += kLanes) {
    Lanes x = load(row + s) * a.scale;
    if (a.softcap > 0) x = hyperbolic_tangent(x / a.softcap) * a.softcap;
    if (bias != nullptr && s < last) x += load_up_to(bias + s, last - s);
    if (s < first || s + kLanes > last) {
      const IntegerLanes here = numbers_from(static_cast<int>(s));
      const IntegerLanes hidden = (here < static_cast<int>(first)) | (here >= static_cast<int>(last));
      x = select(hidden, all(-__builtin_inff()), x);
    }
    store(row + s, x);
    most = larger(x, most);
  }
  return exponentials(row, end, largest_of(most));
}

// V vectors of the result, starting at vector `v`, divided by the sums of their weights.
template <std::size_t R, std::size_t V>
ZOO_INLINE void write_mixed(const Attention& a, std::size_t v, const float (&sums)[R], Lanes (&mixed)[R][V],
                            float* result) {
  for (std::size_t r = 0; r < R; ++r) {
    const float factor = sums[r] > 0 ? 1.0F / sums[r] : 0.0F;
    for (std::size_t i = 0; i < V; ++i) mixed[r][i] *= factor;
  }
  write_rows(ColumnMask<V>(a.head_dim - v * kLanes), result + v * kLanes, a.result_row, mixed);
}

template <class Dot, std::size_t R>
ZOO_INLINE void mix_values(const Attention& a, const std::byte* weights, std::size_t row_bytes,
                           const Scores& scores, const float (&sums)[R], float* result) {
  const std::size_t in_word = a.type == WeightType::kFloat32 ? 1 : 2;
  const std::size_t columns = padded(a.head_dim);
  const std::size_t words = (scores.end - scores.begin + in_word - 1) / in_word;
  const std::byte* values = a.cache.values + scores.begin / in_word * columns * 4;
  for_vectors<kWidestTile<R>>(0, columns / kLanes, [&](auto vectors, std::size_t v) {
    constexpr std::size_t V = decltype(vectors)::value;
    typename Dot::Sums mixed[R][V] = {};
    add_products<Dot, kPrefetch<R>>({weights, row_bytes, 4, values + v * sizeof(Words), columns * 4, words},
                                    mixed);
    write_mixed(a, v, sums, mixed, result);
  });
}

// A panel of an int8 cache: kPanelOutputs positions of `width` bytes, then their scales.
ZOO_INLINE std::byte* byte_panel(std::byte* panels, std::size_t position, std::size_t width) {
  return panels + position / kPanelOutputs * (width + sizeof(float)) * kPanelOutputs;
}

template <std::size_t R>
ZOO_INLINE void score_bytes(const Attention& a, const float* queries, const Scores& scores) {
  for (std::size_t position = scores.begin; position < scores.end; position += kPanelOutputs) {
    const std::byte* panel = byte_panel(a.cache.keys, position, a.head_dim);
    const auto* scales = reinterpret_cast<const float*>(panel + a.head_dim * kPanelOutputs);
    const std::size_t seen = smaller(vectors_of(scores.end - position), kPanelVectors);
    for_vectors<kWidestTile<R>>(0, seen, [&](auto vectors, std::size_t v) {
      constexpr std::size_t V = decltype(vectors)::value;
      Lanes sums[R][V] = {};
      add_products<SignedByteDot>(
          {queries, a.query_row * sizeof(float), 4, panel + v * kLanes, kPanelOutputs, a.head_dim}, sums);
      float* to = scores.data + position - scores.begin + v * kLanes;
      for (std::size_t i = 0; i < V; ++i) {
        const Lanes scale = load(scales + (v + i) * kLanes);
        for (std::size_t r = 0; r < R; ++r) store(to + r * scores.row + i * kLanes, sums[r][i] * scale);
      }
    });
  }
}

// Multiplies weights by the scales of their values.
template <std::size_t R>
ZOO_INLINE void scale_weights(const Attention& a, std::size_t columns, const Scores& scores) {
  for (std::size_t position = scores.begin; position < scores.end; position += kPanelOutputs) {
    const std::byte* panel = byte_panel(a.cache.values, position, columns);
    const auto* scales = reinterpret_cast<const float*>(panel + columns * kPanelOutputs);
    for (std::size_t s = 0; s < kPanelOutputs && position + s < scores.end; s += kLanes) {
      const Lanes scale = load(scales + s);
      for (std::size_t r = 0; r < R; ++r) {
        float* weights = scores.data + r * scores.row + position - scores.begin + s;
        store(weights, load(weights) * scale);
      }
    }
  }
}

template <std::size_t R>
ZOO_INLINE void mix_bytes(const Attention& a, const Scores& scores, const float (&sums)[R], float* result) {
  const std::size_t columns = padded(a.head_dim);
  scale_weights<R>(a, columns, scores);
  for_vectors<kWidestTile<R>>(0, columns / kLanes, [&](auto vectors, std::size_t v) {
    constexpr std::size_t V = decltype(vectors)::value;
    Lanes mixed[R][V] = {};
    for (std::size_t position = scores.begin; position < scores.end; position += kPanelOutputs) {
      add_products<SignedByteDot>({scores.data + position - scores.begin, scores.row * sizeof(float), 4,
                                   byte_panel(a.cache.values, position, columns) + v * kLanes, columns,
                                   smaller(scores.end - position, kPanelOutputs)},
                                  mixed);
    }
    write_mixed(a, v, sums, mixed, result);
  });
}

ZOO_INLINE void copy_as_bfloats(const float* from, std::size_t count, std::byte* to) {
  for (std::size_t k = 0; k < count; k += kLanes) store_bfloats(to + k * 2, load_up_to(from + k, count - k));
}

template <std::size_t R> ZOO_INLINE void attend_tile(const Attention& a, std::size_t query) {
  const std::size_t begin = first_visible(a, query) / kPanelOutputs * kPanelOutputs;
  Scores scores{reinterpret_cast<float*>(a.scratch), 0, begin, visible_to(a, query + R - 1)};
  scores.row = (scores.end - begin + kPanelOutputs - 1) / kPanelOutputs * kPanelOutputs;
  const float* queries = a.queries + query * a.query_row;
  float* result = a.result + query * a.result_row;
  float sums[R];
  if (a.type == WeightType::kFloat32) {
    score<FloatDot, R>(a, reinterpret_cast<const std::byte*>(queries), a.query_row * sizeof(float), scores);
    for (std::size_t r = 0; r < R; ++r) sums[r] = softmax(a, query + r, scores.data + r * scores.row, scores);
    mix_values<FloatDot, R>(a, a.scratch, scores.row * sizeof(float), scores, sums, result);
    return;
  }
  if (a.type == WeightType::kInt8) {
    score_bytes<R>(a, queries, scores);
    for (std::size_t r = 0; r < R; ++r) sums[r] = softmax(a, query + r, scores.data + r * scores.row, scores);
    mix_bytes<R>(a, scores, sums, result);
    return;
  }
  std::byte* halves = a.scratch + R * scores.row * sizeof(float);  // queries, then weights
  const std::size_t query_bytes = padded(a.head_dim) * 2;
  for (std::size_t r = 0; r < R; ++r)
    copy_as_bfloats(queries + r * a.query_row, a.head_dim, halves + r * query_bytes);
  score<PairDot, R>(a, halves, query_bytes, scores);
  const std::size_t row_bytes = scores.row * 2;
  for (std::size_t r = 0; r < R; ++r) {
    float* row = scores.data + r * scores.row;
    sums[r] = softmax(a, query + r, row, scores);
    copy_as_bfloats(row, padded(scores.end - begin), halves + r * row_bytes);
  }
  mix_values<PairDot, R>(a, halves, row_bytes, scores, sums, result);
}

#if defined(__AMX_TILE__)
// A tile of AMX of queries, at most 16, with a cache of bfloat16.
void attend_by_amx(const Attention& a, std::size_t query, std::size_t height) {
  const std::size_t columns = padded(a.head_dim), query_bytes = columns * 2, key_words = (a.head_dim + 1) / 2;
  const std::size_t begin = first_visible(a, query) / kPanelOutputs * kPanelOutputs;
  Scores scores{reinterpret_cast<float*>(a.scratch), 0, begin, visible_to(a, query + height - 1)};
  scores.row = (scores.end - begin + kPanelOutputs - 1) / kPanelOutputs * kPanelOutputs;
  std::byte* halves = a.scratch + height * scores.row * sizeof(float);  // queries, then weights
  for (std::size_t r = 0; r < height; ++r)
    copy_as_bfloats(a.queries + (query + r) * a.query_row, a.head_dim, halves + r * query_bytes);
  ShapedTiles tiles(key_words);
  tiles.set_height(height);
  for (std::size_t position = begin; position < scores.end; position += kPanelOutputs) {
    clear_tiles<kPanelVectors>();
    add_tiles<Bfloat16Tiles, kPanelVectors>({halves, query_bytes,
                                             a.cache.keys + position * key_words * sizeof(std::uint32_t),
                                             kPanelVectors * sizeof(Words), key_words});
    store_tiles<kPanelVectors>(scores.data + position - begin, scores.row * sizeof(float));
  }
  const std::size_t row_bytes = scores.row * 2, words = (scores.end - begin + 1) / 2;
  float sums[kTileSide];
  for (std::size_t r = 0; r < height; ++r) {
    float* row = scores.data + r * scores.row;
    sums[r] = softmax(a, query + r, row, scores);
    copy_as_bfloats(row, padded(scores.end - begin), halves + r * row_bytes);
  }
  settle();
  tiles.set_words(words);
  tiles.set_height(height);
  for_vectors<kPanelVectors>(0, columns / kLanes, [&](auto vectors, std::size_t v) {
    constexpr std::size_t V = decltype(vectors)::value;
    clear_tiles<V>();
    add_tiles<Bfloat16Tiles, V>(
        {halves, row_bytes, a.cache.values + begin * columns * 2 + v * sizeof(Words), columns * 4, words});
    TileSums<V> mixed;
    store_tiles<V>(mixed.of, V * sizeof(Lanes));
    for (std::size_t r = 0; r < height; ++r) {
      Lanes row[1][V];
      read_rows(ColumnMask<V>(V * kLanes), mixed.of + r * mixed.kRow, mixed.kRow, row);
      write_mixed(a, v, {sums[r]}, row, a.result + (query + r) * a.result_row);
    }
  });
}
#endif

void attend(const Attention& a) {
#if defined(__AMX_TILE__)
  if (a.type == WeightType::kBfloat16)
    return for_tall_tiles(a.query_count,
                          [&](std::size_t query, std::size_t height) { attend_by_amx(a, query, height); });
#endif
  const auto tile = [&](auto tall, std::size_t query) { attend_tile<decltype(tall)::value>(a, query); };
  if (a.type == WeightType::kBfloat16) return for_rows<PairDot::kTallest>(0, a.query_count, tile);
  for_rows<kTallTile>(0, a.query_count, tile);
}

void append_bytes(const HeadCache& cache, std::size_t head_dim, std::size_t position, const float* key,
                  const float* value) {
  const std::size_t columns = padded(head_dim), lane = position % kPanelOutputs;
  const auto write_scale = [&](std::byte* scales, float most) {
    const float scale = most / 127.0F;
    std::memcpy(scales + lane * sizeof scale, &scale, sizeof scale);
    return most > 0 ? 127.0F / most : 0.0F;
  };
  const PlainRow keys{key, head_dim}, values{value, head_dim};
  std::byte* panel = byte_panel(cache.keys, position, head_dim);
  const float inverse = write_scale(panel + head_dim * kPanelOutputs, largest(keys, 0, head_dim));
  for (std::size_t d = 0; d < head_dim; d += kLanes) {
    std::int32_t steps[kLanes];
    store(steps, quantized(keys.at(d), inverse));
    for (std::size_t i = 0; i < kLanes && d + i < head_dim; ++i)
      panel[(d + i) * kPanelOutputs + lane] = static_cast<std::byte>(steps[i]);
  }
  panel = byte_panel(cache.values, position, columns);
  store_quantized(values, 0, columns,
                  write_scale(panel + columns * kPanelOutputs, largest(values, 0, head_dim)),
                  panel + lane * columns);
}

void append(WeightType type, const HeadCache& cache, std::size_t head_dim, std::size_t position,
            const float* key, const float* value) {
  const std::size_t columns = padded(head_dim);
  const std::size_t panel = position / kPanelOutputs, lane = position % kPanelOutputs;
  if (type == WeightType::kFloat32) {
    auto* keys = reinterpret_cast<float*>(cache.keys) + panel * head_dim * kPanelOutputs + lane;
    for (std::size_t d = 0; d < head_dim; ++d) keys[d * kPanelOutputs] = key[d];
    std::memcpy(cache.values + position * columns * sizeof(float), value, head_dim * sizeof(float));
    return;
  }
  if (type == WeightType::kInt8) return append_bytes(cache, head_dim, position, key, value);
  const std::size_t words = (head_dim + 1) / 2;
  auto* keys = reinterpret_cast<std::uint16_t*>(cache.keys) + (panel * words * kPanelOutputs + lane) * 2;
  auto* values = reinterpret_cast<std::uint16_t*>(cache.values) + position / 2 * columns * 2 + position % 2;
  for (std::size_t d = 0; d < head_dim; ++d) {
    keys[d / 2 * kPanelOutputs * 2 + d % 2] = to_bfloat16(key[d]);
    values[d * 2] = to_bfloat16(value[d]);
  }
}
