#include "models/layers/linear.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/where.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/layers/parameter.h"

namespace zoo {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct FrozenCall : torch::CustomClassHolder {
  explicit FrozenCall(std::shared_ptr<const FrozenWeight> the_weight) : weight(std::move(the_weight)) {}
  std::shared_ptr<const FrozenWeight> weight;
};

// Calls f(first, last) for rows of the weight whose numbers in float32 fit the caches: all of them would cost
// new pages of memory in each product.
template <class F> void for_rows(const FrozenWeight& weight, const F& f) {
  constexpr std::int64_t kNumbers = std::int64_t{1} << 21, kUnit = FrozenWeight::kUnit;
  const std::int64_t most = std::max(kUnit, kNumbers / weight.inputs / kUnit * kUnit);
  for (std::int64_t first = 0; first < weight.outputs; first += most)
    f(first, std::min(first + most, weight.outputs));
}

// x W^T, which keeps neither x nor the numbers of W for the backward pass.
class FrozenProduct : public torch::autograd::Function<FrozenProduct> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const std::shared_ptr<const FrozenWeight>& weight) {
    context->saved_data["weight"] = c10::IValue::make_capsule(c10::make_intrusive<FrozenCall>(weight));
    std::vector<at::Tensor> parts;
    for_rows(*weight, [&](std::int64_t first, std::int64_t last) {
      parts.push_back(ops::linear(x, weight->floats(first, last), {}));
    });
    return parts.size() == 1 ? parts.front() : at::cat(parts, -1);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto capsule = context->saved_data["weight"].toCapsule();
    const auto& call = static_cast<const FrozenCall&>(*capsule);
    const at::Tensor gradient = gradients[0].to(at::kFloat);
    at::Tensor sum;
    for_rows(*call.weight, [&](std::int64_t first, std::int64_t last) {
      sum = ops::linear(gradient.slice(-1, first, last), call.weight->floats(first, last).t(), {},
                        {.add_to = sum});
    });
    return {sum, {}};
  }
};

}  // namespace

LinearImpl::LinearImpl(std::int64_t in_features, std::int64_t out_features, bool with_bias) {
  weight = register_parameter("weight", make_parameter({out_features, in_features}));
  bias = register_parameter("bias", with_bias ? make_parameter({out_features}) : at::Tensor(), with_bias);
  if (!parameters_want_default()) return;
  // He et al. (2015) with a = sqrt(5), which is uniform on +-1/sqrt(in).
  const double bound = 1.0 / std::sqrt(static_cast<double>(in_features));
  const at::NoGradGuard no_grad;
  weight.uniform_(-bound, bound);
  if (with_bias) bias.uniform_(-bound, bound);
}

at::Tensor LinearImpl::forward(const at::Tensor& x, const ops::Residual& residual) const {
  if (!low_rank) return project(x, bias, residual);
  // B (A x), not (B A) x, whose gradient and sum with W would be as large as W.
  const at::Tensor inner = ops::linear(x, low_rank->a, {}) * low_rank->scale, b = low_rank->masked_b();
  if (low_rank->magnitude.defined()) {
    const at::Tensor product = project(x, {}, {.add_to = ops::linear(inner, b, {})});
    const at::Tensor scaled = product * row_factors();
    return residual((bias.defined() ? scaled + bias : scaled).to(product.scalar_type()));
  }
  if (residual.dropout > 0) return residual(project(x, bias, {.add_to = ops::linear(inner, b, {})}));
  return project(x, bias, {.add_to = ops::linear(inner, b, {}, {.add_to = residual.add_to})});
}

at::Tensor LinearImpl::project(const at::Tensor& x, const at::Tensor& added,
                               const ops::Residual& residual) const {
  if (!frozen) return ops::linear(x, weight, added, residual);
  const at::Tensor product = FrozenProduct::apply(x, frozen);
  return residual(added.defined() ? product + added : product);
}

at::Tensor LinearImpl::sum() const {
  const at::Tensor numbers = frozen ? frozen->floats() : weight;
  return low_rank ? numbers + at::matmul(low_rank->masked_b(), low_rank->a) * low_rank->scale : numbers;
}

at::Tensor LinearImpl::row_factors() const {
  const auto norms = [&] {
    const at::NoGradGuard constant;
    return at::linalg_vector_norm(sum(), 2, 1);
  }();
  const at::Tensor factors = low_rank->magnitude / norms;
  return low_rank->mask.defined() ? at::where(low_rank->mask.any(1), factors, 1) : factors;
}

at::Tensor LinearImpl::adapted_weight() const {
  const bool scales = low_rank && low_rank->magnitude.defined();
  return scales ? sum() * row_factors().unsqueeze(1) : sum();
}

EmbeddingImpl::EmbeddingImpl(std::int64_t num_embeddings, std::int64_t embedding_dim, std::int64_t padding_id)
    : padding_id_(padding_id) {
  weight = register_parameter("weight", make_parameter({num_embeddings, embedding_dim}));
  if (!parameters_want_default()) return;
  const at::NoGradGuard no_grad;
  weight.normal_();
}

at::Tensor EmbeddingImpl::forward(const at::Tensor& ids) const {
  try {
    return at::embedding(weight, ids, padding_id_);
  } catch (const c10::IndexError&) {  // the CPU's own message does not name the id
    const at::Tensor outside = ids.masked_select(ids.lt(0).logical_or(ids.ge(weight.size(0))));
    TORCH_CHECK_INDEX(outside.numel() == 0, "the id ", outside[0].item<std::int64_t>(), " is not in [0, ",
                      weight.size(0), ")");
    throw;
  }
}

}  // namespace zoo
