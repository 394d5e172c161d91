#include "models/layers/attention/masks.h"

#include <limits>

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include "models/ops/tracing.h"

namespace zoo {
namespace {

// Keys on a query's left, and in an encoder on its right, that its window holds.
std::int64_t reach_of(const MaskShape& shape) {
  if (shape.window == 0) return shape.keys;
  return shape.causal ? shape.window - 1 : shape.window / 2;
}

// [T, S], true where query t may see key s; the queries are the last T of S positions.
at::Tensor visible_pairs(const MaskShape& shape, const at::Device& device) {
  const auto options = at::TensorOptions().dtype(at::kBool).device(device);
  const std::int64_t past = shape.keys - shape.queries, reach = reach_of(shape);
  const at::Tensor all = at::ones({shape.queries, shape.keys}, options);
  const at::Tensor near = shape.window > 0 ? all.triu(past - reach) : all;
  return near.tril(shape.causal ? past : past + reach);
}

}  // namespace

AttentionMask make_attention_mask(const at::Tensor& attention_mask, const MaskShape& shape,
                                  at::ScalarType dtype, const at::Device& device) {
  TORCH_CHECK(!shape.causal || shape.keys >= shape.queries, "a causal mask needs at least as many keys (",
              shape.keys, ") as queries (", shape.queries, ")");
  AttentionMask mask;
  // A single query in last place sees every key that its window holds.
  const bool hides_future = shape.causal && shape.queries > 1;
  // A trace holds for all numbers of keys.
  const bool hides_distant = ops::Tracing::is_active() ? shape.window > 0 : reach_of(shape) < shape.keys - 1;
  if (!attention_mask.defined()) {
    if (!hides_future && !hides_distant) return mask;
    if (shape.queries == shape.keys && !hides_distant) {
      mask.causal = true;
      return mask;
    }
  } else {
    TORCH_CHECK(attention_mask.dim() == 2 && attention_mask.size(1) == shape.keys,
                "attention_mask must be [batch, ", shape.keys, "], got ", attention_mask.sizes());
  }

  at::Tensor visible;  // [B or 1, 1, T or 1, S]
  if (attention_mask.defined()) visible = attention_mask.to(device).ne(0).unsqueeze(1).unsqueeze(1);
  if (hides_future || hides_distant) {
    const at::Tensor pairs = visible_pairs(shape, device);
    visible = visible.defined() ? visible & pairs : pairs.unsqueeze(0).unsqueeze(0);
  }
  const at::Tensor hidden_rows = visible.any(-1, /*keepdim=*/true).logical_not();
  // Checking for such a row synchronises an accelerator; multiplying by the mask does not. A trace holds for
  // both.
  if (!device.is_cpu() || ops::Tracing::is_active() || hidden_rows.any().item<bool>()) {
    mask.hidden_rows = hidden_rows;
    visible = visible | hidden_rows;
  }
  mask.bias = at::zeros(visible.sizes(), at::TensorOptions().dtype(dtype).device(device))
                  .masked_fill_(visible.logical_not(), -std::numeric_limits<double>::infinity());
  // Kernels read a bias with T rows; a broadcast view costs no memory.
  if (mask.bias.size(2) != shape.queries) mask.bias = mask.bias.expand({-1, -1, shape.queries, -1});
  return mask;
}

AttentionMask with_bias(AttentionMask mask, const at::Tensor& bias) {
  if (mask.causal) {
    const MaskShape shape{.queries = bias.size(2), .keys = bias.size(3), .causal = true};
    const at::Tensor past = visible_pairs(shape, bias.device());
    mask.bias = bias.masked_fill(past.logical_not(), -std::numeric_limits<double>::infinity());
    mask.causal = false;
  } else {
    mask.bias = mask.bias.defined() ? mask.bias + bias : bias;
  }
  return mask;
}

at::Tensor positions_of(const at::Tensor& attention_mask) {
  return (attention_mask.to(at::kLong).cumsum(-1) - 1).clamp_min_(0);
}

}  // namespace zoo
