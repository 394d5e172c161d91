#include "models/ops/attention.h"

#include <array>
#include <cmath>
#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>

#include "models/kernels/attention/short_attention.h"
#include "models/kernels/training/row_functions.h"
#include "models/ops/activation.h"
#include "models/ops/linear.h"

namespace zoo::ops {
namespace {

// Keys or values for each head of the queries.
at::Tensor repeated(const at::Tensor& x, const at::Tensor& q) {
  const std::int64_t group = q.size(1) / x.size(1);
  return group == 1 ? x : x.repeat_interleave(group, 1);
}

double scale_of(const at::Tensor& q, const AttentionOptions& options) {
  return options.scale != 0 ? options.scale : 1.0 / std::sqrt(static_cast<double>(q.size(-1)));
}

// Computes the weights explicitly, to return them.
AttentionOutput explicit_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                   const AttentionMask& mask, const AttentionOptions& options) {
  AttentionOutput result;
  result.weights = at::softmax(attention_logits(q, k, mask, options), -1, at::kFloat).to(q.scalar_type());
  if (mask.hidden_rows.defined()) result.weights = result.weights.masked_fill(mask.hidden_rows, 0.0);
  const at::Tensor dropped = ops::dropout(result.weights, options.dropout);
  result.output = at::matmul(dropped, repeated(v, q));
  if (options.relative_values.defined())
    result.output = result.output + at::einsum("bhts,tsd->bhtd", {dropped, options.relative_values});
  return result;
}

// The projection [B, T, 3 H D] of whose thirds q, k and v [B, H, T, D] are views, for a kernel that writes
// the gradient of all three at once. Undefined if they are no such views, or if their gradients do not flow
// through it.
at::Tensor joint_projection(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  if (!q.is_view() || !k.is_view() || !v.is_view() || q.sizes() != k.sizes()) return {};
  const at::Tensor joint(q._base());
  if (!joint.is_same(k._base()) || !joint.is_same(v._base()) || !joint.is_contiguous()) return {};
  const std::int64_t batch = q.size(0), heads = q.size(1), length = q.size(2), head_dim = q.size(3);
  const std::int64_t width = heads * head_dim;
  if (joint.sizes() != at::IntArrayRef{batch, length, 3 * width}) return {};
  std::int64_t offset = joint.storage_offset();
  for (const at::Tensor* part : {&q, &k, &v}) {
    const std::array<std::int64_t, 4> strides{3 * width * length, head_dim, 3 * width, 1};
    if (part->storage_offset() != offset || part->strides() != at::IntArrayRef(strides) ||
        part->requires_grad() != joint.requires_grad())
      return {};
    offset += width;
  }
  return joint;
}

bool is_only_causal(const AttentionMask& mask, const AttentionOptions& options) {
  return mask.causal && !mask.hidden_rows.defined() && options.dropout == 0 && options.scale == 0 &&
         options.softcap == 0 && !options.need_weights && !options.relative_keys.defined();
}

// One masked query per head on a GPU: LibTorch's attentions with a mask give each head to one multiprocessor,
// and copy the keys of grouped heads.
bool is_single_query(const at::Tensor& q, const AttentionMask& mask) {
  return !q.is_cpu() && q.size(2) == 1 && mask.bias.defined() && mask.bias.size(1) == 1 && !mask.causal;
}

// One attention for each document: none of the scores between two documents is computed.
AttentionOutput attention_within_documents(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                           const AttentionMask& mask, const AttentionOptions& options) {
  TORCH_CHECK(!options.need_weights, "rows of several documents have no attention weights [B, H, T, T]");
  const auto parts_of = [&](const at::Tensor& x) {
    return x.transpose(0, 1).flatten(1, 2).unsqueeze(0).split_with_sizes(mask.documents, 2);
  };
  const auto queries = parts_of(q), keys = parts_of(k), values = parts_of(v);
  std::vector<at::Tensor> outputs;  // [1, H, length, D]
  for (std::size_t i = 0; i < queries.size(); ++i) {
    const auto square = [length = mask.documents[i]](const at::Tensor& of_pairs, std::int64_t rows) {
      if (!of_pairs.defined()) return at::Tensor();
      return of_pairs.slice(rows, 0, length).slice(rows + 1, 0, length);
    };
    AttentionOptions own = options;
    own.relative_keys = square(options.relative_keys, 0);
    own.relative_values = square(options.relative_values, 0);
    const AttentionMask seen{.causal = mask.causal, .bias = square(mask.bias, 2)};
    outputs.push_back(scaled_dot_product_attention(queries[i], keys[i], values[i], seen, own).output);
  }
  return {at::cat(outputs, 2).squeeze(0).unflatten(1, {q.size(0), q.size(2)}).transpose(0, 1), at::Tensor()};
}

}  // namespace

AttentionOutput scaled_dot_product_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                             const AttentionMask& mask, const AttentionOptions& given) {
  if (is_only_causal(mask, given)) {
    const at::Tensor joint = joint_projection(q, k, v);
    if (joint.defined() && kernels::has_short_attention(joint, mask.documents)) {
      const at::Tensor merged =
          kernels::causal_self_attention(joint, q.size(1), mask.documents);  // [B, T, H D]
      return {merged.unflatten(-1, {q.size(1), q.size(3)}).transpose(1, 2), at::Tensor()};
    }
  }
  if (!mask.documents.empty()) return attention_within_documents(q, k, v, mask, given);
  AttentionOptions options = given;
  options.scale = scale_of(q, given);
  AttentionOutput result;
  // LibTorch's attention draws dropout on a single CPU thread.
  const bool drops = options.dropout > 0 && q.is_cpu();
  if (options.need_weights || options.relative_keys.defined() || options.softcap > 0 || drops) {
    result = explicit_attention(q, k, v, mask, options);
    if (!options.need_weights) result.weights = at::Tensor();
  } else if (is_single_query(q, mask) && options.dropout == 0) {
    // To its keys, a group's heads are one head with several queries.
    const at::Tensor grouped = q.reshape({q.size(0), k.size(1), -1, q.size(3)});
    result.output = explicit_attention(grouped, k, v, {.bias = mask.bias}, options).output.reshape(q.sizes());
  } else {
    const auto bias = mask.bias.defined() ? std::optional<at::Tensor>(mask.bias) : std::nullopt;
    result.output = at::scaled_dot_product_attention(q, k, v, bias, options.dropout, mask.causal,
                                                     options.scale, /*enable_gqa=*/q.size(1) != k.size(1));
  }
  if (mask.hidden_rows.defined()) result.output = result.output.masked_fill(mask.hidden_rows, 0.0);
  return result;
}

at::Tensor attention_logits(const at::Tensor& q, const at::Tensor& k, const AttentionMask& mask,
                            const AttentionOptions& options) {
  at::Tensor scores = at::matmul(q, repeated(k, q).transpose(-2, -1));
  if (options.relative_keys.defined())
    scores = scores + at::einsum("bhtd,tsd->bhts", {q, options.relative_keys});
  scores = scores * scale_of(q, options);
  scores = softcap(scores, options.softcap);
  if (mask.causal) {
    const at::Tensor future = at::ones_like(scores.select(0, 0).select(0, 0), at::kBool).triu(1);
    scores = scores.masked_fill(future, -std::numeric_limits<double>::infinity());
  }
  return mask.bias.defined() ? scores + mask.bias : scores;
}

at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  if (kernels::has_fast_rotation(x, cos)) return kernels::rotate(x, cos, sin);
  const auto halves = x.chunk(2, -1);
  const at::Tensor quarter_turned = at::cat({-halves[1], halves[0]}, -1);
  return x * cos.to(x.scalar_type()) + quarter_turned * sin.to(x.scalar_type());
}

}  // namespace zoo::ops
