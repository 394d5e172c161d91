// Prepares rows of activations for a product (inference_kernels.h: Preparation).

ZOO_INLINE Lanes magnitude(Lanes x) { return bits<Lanes>(bits<Words>(x) & 0x7FFFFFFFU); }

/// 16 elements of a row from `k` on, zero past its end.
struct PlainRow {
  const float* x;
  std::size_t width;
  ZOO_INLINE Lanes at(std::size_t k) const { return load_up_to(x + k, width - k); }
};

struct GatedRow {
  const float* x;
  std::size_t width;
  Pointwise f;
  ZOO_INLINE Lanes at(std::size_t k) const {
    Lanes gate{};
    with_function(f, [&](auto function) { gate = function.value(load_up_to(x + k, width - k)); });
    return gate * load_up_to(x + width + k, width - k);
  }
};

struct NormalRow {
  const float *x, *weight, *bias;
  std::size_t width;
  float mean = 0, factor = 1;

  ZOO_INLINE void measure(const Preparation& p) {
    Lanes sums{};
    if (p.norm == Normalization::kLayer) {
      for (std::size_t k = 0; k < width; k += kLanes) sums += load_up_to(x + k, width - k);
      mean = sum_of(sums) / static_cast<float>(width);
      sums = Lanes{};
    }
    for (std::size_t k = 0; k < width; k += kLanes) {
      // Lanes past the end must not add to the variance.
      Lanes distance = load_up_to(x + k, width - k) - mean;
      if (width - k < kLanes) distance = load_some(reinterpret_cast<const float*>(&distance), width - k);
      sums += distance * distance;
    }
    factor = 1.0F / __builtin_sqrtf(sum_of(sums) / static_cast<float>(width) + p.norm_eps);
  }

  ZOO_INLINE Lanes at(std::size_t k) const {
    const Lanes x_hat = (load_up_to(x + k, width - k) - mean) * factor * load_up_to(weight + k, width - k);
    return bias != nullptr ? x_hat + load_up_to(bias + k, width - k) : x_hat;
  }
};

// Rounds denormal numbers too, as instruction sets without BF16 do.
ZOO_INLINE void store_bfloats(std::byte* to, const Lanes& lanes) {
  store(to, narrowed(rounded_to_bfloat16(lanes)));
}

// Rounds to the nearest steps; `inverse` is steps per unit.
ZOO_INLINE IntegerLanes quantized(const Lanes& x, float inverse) {
  const float magic = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  return converted<IntegerLanes>((x * inverse + magic) - magic);
}

// Quantizes part of a row to int8 and returns the sum. `inverse` is 1 / scale.
template <class Row>
ZOO_INLINE std::int32_t store_quantized(const Row& row, std::size_t first, std::size_t last, float inverse,
                                        std::byte* to) {
  IntegerLanes sums{};
  for (std::size_t k = first; k < last; k += kLanes) {
    IntegerLanes q{};
    if (k < row.width) q = quantized(row.at(k), inverse);
    sums += q;
    store_bytes(to + k, q);
  }
  return sum_of(sums);
}

template <class Row> ZOO_INLINE float largest(const Row& row, std::size_t first, std::size_t last) {
  Lanes found{};
  for (std::size_t k = first; k < last && k < row.width; k += kLanes)
    found = larger(magnitude(row.at(k)), found);
  return largest_of(found);
}

template <class Row> void write_row(const Row& row, const PreparedRows& to, std::size_t index) {
  std::byte* data = to.data + index * to.row_bytes;
  const std::size_t padded = (row.width + kGroup - 1) / kGroup * kGroup;
  if (to.type == WeightType::kFloat32) {
    auto* floats = reinterpret_cast<float*>(data);
    for (std::size_t k = 0; k < row.width; k += kLanes) store_up_to(floats + k, row.at(k), row.width - k);
  } else if (to.type == WeightType::kBfloat16) {
    for (std::size_t k = 0; k < padded; k += kLanes) {
      const Lanes x = k < row.width ? row.at(k) : Lanes{};
      if (kBfloat16Bytes == 2) store_bfloats(data + k * kBfloat16Bytes, x);
      else store(data + k * kBfloat16Bytes, low_half(rounded_to_bfloat16(x)));
    }
  } else {
    const bool is_int8 = to.type == WeightType::kInt8;
    const std::size_t part = is_int8 ? kByteGroup : kGroup, summed = is_int8 ? kByteGroup : kRun;
    float* scale = to.scales + index * scales_in_row(to.type, row.width);
    std::int32_t* sum = to.sums + index * sums_in_row(to.type, row.width);
    for (std::size_t first = 0; first < padded; first += part) {
      const std::size_t last = smaller(first + part, padded);
      const float most = largest(row, first, last), inverse = most > 0 ? 127.0F / most : 0.0F;
      *scale++ = most / 127.0F;
      for (std::size_t k = first; k < last; k += summed)
        *sum++ = store_quantized(row, k, smaller(k + summed, last), inverse, data);
    }
  }
}

void prepare(const Preparation& p, const PreparedRows& to, std::size_t first, std::size_t last) {
  for (std::size_t i = first; i < last; ++i) {
    const float* x = p.input + i * p.input_row;
    if (p.norm != Normalization::kNone) {
      NormalRow row{x, p.norm_weight, p.norm_bias, p.width};
      row.measure(p);
      write_row(row, to, i);
    } else if (p.gate != Pointwise::kNone) {
      write_row(GatedRow{x, p.width, p.gate}, to, i);
    } else {
      write_row(PlainRow{x, p.width}, to, i);
    }
  }
}

void apply(Pointwise f, float* x, std::size_t count) {
  with_function(f, [&](auto function) {
    for (std::size_t k = 0; k < count; k += kLanes) {
      store_up_to(x + k, function.value(load_up_to(x + k, count - k)), count - k);
    }
  });
}

void rotate(const Rotation& r) {
  for (std::size_t head = 0; head < r.heads; ++head) {
    float* x = r.rows + head * r.head_dim;
    for (std::size_t i = 0; i < r.pairs; ++i) {
      const float low = x[i], high = x[r.pairs + i];
      x[i] = low * r.cos[i] - high * r.sin[i];
      x[r.pairs + i] = high * r.cos[i] + low * r.sin[i];
    }
  }
}
