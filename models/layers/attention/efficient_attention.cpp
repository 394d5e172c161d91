#include "models/layers/attention/efficient_attention.h"

#include <cmath>
#include <limits>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>

#include "models/layers/attention/positions.h"

namespace zoo {
namespace {

double scale_of(const EfficientAttentionOptions& options, const at::Tensor& q) {
  return options.scale != 0 ? options.scale : 1.0 / std::sqrt(static_cast<double>(q.size(-1)));
}

// Softmax over visible keys; rows that see none give zeros, without NaN in between.
at::Tensor masked_softmax(const at::Tensor& scores, const at::Tensor& visible, double dropout) {
  const at::Tensor blind = visible.any(-1, /*keepdim=*/true).logical_not();
  const at::Tensor hidden = (visible | blind).logical_not();
  const at::Tensor shown = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
  const at::Tensor weights =
      at::softmax(shown, -1, at::kFloat).to(scores.scalar_type()).masked_fill(blind, 0.0);
  return at::dropout(weights, dropout, dropout > 0);
}

AttentionOutput dense(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                      const EfficientAttentionOptions& options) {
  at::Tensor visible = visible_keys(options, q.size(2), k.size(2), q.device());
  if (options.key_mask.defined()) visible = visible & options.key_mask.unsqueeze(1).unsqueeze(1);
  const at::Tensor scores = at::matmul(q, k.transpose(-2, -1)) * scale_of(options, q);
  const at::Tensor weights = masked_softmax(scores, visible, 0.0);
  return {at::matmul(at::dropout(weights, options.dropout, options.dropout > 0), v),
          options.need_weights ? weights : at::Tensor()};
}

// A sequence cut into N blocks of w positions, w = the window; each query block sees the keys of its own
// block and of its neighbours.
struct Blocks {
  std::int64_t length, width, count, padding;  // T, w, N and the padding of the last block
  std::int64_t left, right;                    // visible positions of the neighbours

  Blocks(std::int64_t positions, const EfficientAttentionOptions& options)
      : length(positions),
        width(std::min(options.window, positions)),
        count((positions + width - 1) / width),
        padding(count * width - positions),
        left(width),
        right(options.causal ? 0 : width) {}

  // [B, H, T, D] -> [B, H, N, w, D]
  at::Tensor cut(const at::Tensor& x) const {
    return at::constant_pad_nd(x, {0, 0, 0, padding}).unflatten(2, {count, width});
  }
  // [B, H, T, D] -> [B, H, N, D, left + w + right]
  at::Tensor with_neighbours(const at::Tensor& x) const {
    return at::constant_pad_nd(x, {0, 0, left, right + padding}).unfold(2, left + width + right, width);
  }
  // [B or 1, 1, N, w, left + w + right], true at visible distances within the sequence.
  at::Tensor visible_neighbours(const EfficientAttentionOptions& options, const at::Tensor& keys) const {
    const auto numbers = at::TensorOptions().dtype(at::kLong).device(keys.device());
    const at::Tensor distances =
        at::arange(-left, width + right, numbers) - at::arange(width, numbers).unsqueeze(1);
    at::Tensor near = distances.abs() <= options.window;
    if (options.kind == AttentionKind::kStridedSparse) near = distances.abs() < options.window;
    if (options.causal) near = near & (distances <= 0);
    // [B or 1, T] padded like the keys, so that places outside the sequence are hidden.
    const at::Tensor inside = at::constant_pad_nd(keys, {left, right + padding});
    return near & inside.unfold(1, left + width + right, width).unsqueeze(1).unsqueeze(3);
  }
};

// [B or 1, T] bool
at::Tensor keys_of(const EfficientAttentionOptions& options, const at::Tensor& k) {
  if (options.key_mask.defined()) return options.key_mask;
  return at::ones({1, k.size(2)}, at::TensorOptions().dtype(at::kBool).device(k.device()));
}

at::Tensor windowed(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const EfficientAttentionOptions& options) {
  const Blocks blocks(q.size(2), options);
  const at::Tensor visible = blocks.visible_neighbours(options, keys_of(options, k));
  const at::Tensor scores = at::matmul(blocks.cut(q) * scale_of(options, q), blocks.with_neighbours(k));
  const at::Tensor weights = masked_softmax(scores, visible, options.dropout);
  const at::Tensor output = at::matmul(weights, blocks.with_neighbours(v).transpose(-2, -1));
  return output.flatten(2, 3).slice(2, 0, blocks.length);
}

// One softmax over the neighbours' scores and those of the same place in every other block.
at::Tensor strided(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                   const EfficientAttentionOptions& options) {
  const Blocks blocks(q.size(2), options);
  const at::Tensor keys = keys_of(options, k), queries = blocks.cut(q) * scale_of(options, q);
  const at::Tensor near = at::matmul(queries, blocks.with_neighbours(k));  // [B, H, N, w, 2w or 3w]
  const auto columns = [&](const at::Tensor& x) { return blocks.cut(x).transpose(2, 3); };  // [B, H, w, N, D]
  const at::Tensor far = at::matmul(queries.transpose(2, 3), columns(k).transpose(-2, -1)).transpose(2, 3);

  const auto numbers = at::TensorOptions().dtype(at::kLong).device(q.device());
  const at::Tensor apart =
      at::arange(blocks.count, numbers) - at::arange(blocks.count, numbers).unsqueeze(1);  // [N, N]
  const at::Tensor other = options.causal ? apart < 0 : apart != 0;  // neighbours include the query
  const at::Tensor inside =
      at::constant_pad_nd(keys, {0, blocks.padding}).unflatten(1, {blocks.count, blocks.width});  // [B, N, w]
  // [B, 1, N, w, N]
  const at::Tensor far_visible = other.unsqueeze(1) & inside.transpose(1, 2).unsqueeze(1).unsqueeze(1);
  const at::Tensor near_visible = blocks.visible_neighbours(options, keys);
  const at::Tensor weights =
      masked_softmax(at::cat({near, far}, -1), at::cat({near_visible, far_visible}, -1), options.dropout);
  const auto parts = weights.split_with_sizes({near.size(-1), far.size(-1)}, -1);
  const at::Tensor from_near = at::matmul(parts[0], blocks.with_neighbours(v).transpose(-2, -1));
  const at::Tensor from_far = at::matmul(parts[1].transpose(2, 3), columns(v)).transpose(2, 3);
  return (from_near + from_far).flatten(2, 3).slice(2, 0, blocks.length);
}

constexpr std::int64_t kChunk = 64;

at::Tensor feature_map(const at::Tensor& x) { return at::elu(x) + 1; }

// [B, H, S, D] with zeros at hidden keys.
at::Tensor without_hidden(const at::Tensor& x, const at::Tensor& key_mask) {
  return key_mask.defined() ? x * key_mask.unsqueeze(1).unsqueeze(-1).to(x.scalar_type()) : x;
}

// A sum is 0 only where every key is hidden: phi is positive.
at::Tensor divided(const at::Tensor& numerator, const at::Tensor& denominator) {
  const at::Tensor nothing = denominator.eq(0);
  return (numerator / denominator.masked_fill(nothing, 1.0)).masked_fill(nothing, 0.0);
}

AttentionOutput all_pairs(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          const EfficientAttentionOptions& options) {
  at::Tensor products = at::matmul(q, k.transpose(-2, -1));
  if (options.causal) products = products * (relative_distances(q.size(2), k.size(2), q.device()) <= 0);
  const at::Tensor weights = divided(products, products.sum(-1, /*keepdim=*/true));
  return {at::matmul(weights, v), options.need_weights ? weights : at::Tensor()};
}

// Works in chunks: earlier chunks contribute a running sum, the chunk itself its own pairs.
at::Tensor causal_sums(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  std::vector<at::Tensor> outputs;
  at::Tensor values =
      at::matmul(k.slice(2, 0, 0).transpose(-2, -1), v.slice(2, 0, 0));  // [B, H, D, D], zeros
  at::Tensor keys = k.slice(2, 0, 0).sum(2, /*keepdim=*/true);           // [B, H, 1, D]
  for (std::int64_t begin = 0; begin < q.size(2); begin += kChunk) {
    const auto part = [&](const at::Tensor& x) { return x.slice(2, begin, begin + kChunk); };
    const at::Tensor qs = part(q), ks = part(k), vs = part(v);
    const at::Tensor inside = at::matmul(qs, ks.transpose(-2, -1)).tril();
    outputs.push_back(divided(at::matmul(inside, vs) + at::matmul(qs, values),
                              inside.sum(-1, true) + (qs * keys).sum(-1, true)));
    values = values + at::matmul(ks.transpose(-2, -1), vs);
    keys = keys + ks.sum(2, true);
  }
  return at::cat(outputs, 2);
}

}  // namespace

at::Tensor visible_keys(const EfficientAttentionOptions& options, std::int64_t queries, std::int64_t keys,
                        const at::Device& device) {
  const at::Tensor distances = relative_distances(queries, keys, device);
  at::Tensor visible = distances.abs() <= options.window;
  if (options.kind != AttentionKind::kSlidingWindow)
    visible = (distances.abs() < options.window) | distances.remainder(options.window).eq(0);
  return options.causal ? visible & (distances <= 0) : visible;
}

AttentionOutput sparse_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                 const EfficientAttentionOptions& options) {
  TORCH_CHECK(options.window > 0, "sparse attention needs a window of at least 1, got ", options.window);
  if (options.need_weights || q.size(2) != k.size(2)) return dense(q, k, v, options);
  const bool slides = options.kind == AttentionKind::kSlidingWindow;
  return {slides ? windowed(q, k, v, options) : strided(q, k, v, options), at::Tensor()};
}

AttentionOutput linear_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                 const EfficientAttentionOptions& options) {
  const at::Tensor queries = feature_map(q), keys = without_hidden(feature_map(k), options.key_mask);
  if (options.need_weights || (options.causal && q.size(2) != k.size(2)))
    return all_pairs(queries, keys, v, options);
  if (options.causal) return {causal_sums(queries, keys, v), at::Tensor()};
  const at::Tensor sum = keys.sum(2, /*keepdim=*/true);
  return {divided(at::matmul(queries, at::matmul(keys.transpose(-2, -1), v)), (queries * sum).sum(-1, true)),
          at::Tensor()};
}

AttentionOutput linformer_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                    const at::Tensor& key_projection, const at::Tensor& value_projection,
                                    const EfficientAttentionOptions& options) {
  TORCH_CHECK(!options.causal, "Linformer attention mixes all positions: it cannot be causal");
  TORCH_CHECK(k.size(2) <= key_projection.size(1), "Linformer attention was made for ",
              key_projection.size(1), " positions, got ", k.size(2));
  const auto mixed = [&](const at::Tensor& projection, const at::Tensor& x) {
    return at::matmul(projection.slice(1, 0, x.size(2)), without_hidden(x, options.key_mask));
  };
  const at::Tensor scores = at::matmul(q, mixed(key_projection, k).transpose(-2, -1)) * scale_of(options, q);
  const at::Tensor weights = at::softmax(scores, -1, at::kFloat).to(q.scalar_type());
  const at::Tensor dropped = at::dropout(weights, options.dropout, options.dropout > 0);
  return {at::matmul(dropped, mixed(value_projection, v)), options.need_weights ? weights : at::Tensor()};
}

}  // namespace zoo
