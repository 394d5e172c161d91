#include <cmath>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>

#include "models/layers/attention/efficient_attention.h"
#include "models/layers/attention/positions.h"

namespace zoo {
namespace {

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
  const double scale = options.scale != 0 ? options.scale : 1.0 / std::sqrt(static_cast<double>(q.size(-1)));
  const at::Tensor scores = at::matmul(q, mixed(key_projection, k).transpose(-2, -1)) * scale;
  const at::Tensor weights = at::softmax(scores, -1, at::kFloat).to(q.scalar_type());
  const at::Tensor dropped = at::dropout(weights, options.dropout, options.dropout > 0);
  return {at::matmul(dropped, mixed(value_projection, v)), options.need_weights ? weights : at::Tensor()};
}

}  // namespace zoo
