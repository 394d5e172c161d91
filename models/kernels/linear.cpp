#include "models/kernels/linear.h"

#include <algorithm>
#include <optional>

#include <ATen/autocast_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/kernels/bfloat16_linear.h"
#include "models/kernels/cpu.h"
#include "models/kernels/function_tensors.h"
#include "models/kernels/matrix_product.h"
#include "models/kernels/parallel_product.h"

namespace zoo::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kFewestRows = 16;

// Optional terms of the result besides the product.
struct Extras {
  std::optional<at::Tensor> bias, addend;
  Pointwise pointwise = Pointwise::kNone;
  at::Tensor activated, times;
};

// Multiplies a [M, K] by b [K, N], both with any strides.
at::Tensor product_of(const at::Tensor& a, const at::Tensor& b, const Extras& extras = {}) {
  at::Tensor result = at::empty({a.size(0), b.size(1)}, a.options());
  MatrixProduct product{.rows = size_of(a, 0),
                        .columns = size_of(b, 1),
                        .depth = size_of(a, 1),
                        .a = view(a),
                        .b = view(b),
                        .result = result.mutable_data_ptr<float>(),
                        .result_row = size_of(b, 1),
                        .pointwise = extras.pointwise};
  if (extras.bias) product.bias = extras.bias->const_data_ptr<float>();
  if (extras.addend) product.addend = extras.addend->const_data_ptr<float>();
  if (extras.activated.defined()) product.activated = extras.activated.mutable_data_ptr<float>();
  if (extras.times.defined()) product.times = extras.times.const_data_ptr<float>();
  multiply_in_parallel(product);
  return result;
}

class LinearFunction : public torch::autograd::Function<LinearFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, const std::optional<at::Tensor>& addend) {
    const at::Tensor rows = as_matrix(x);
    context->save_for_backward({rows, weight});
    context->saved_data["sizes"] = x.sizes().vec();
    context->saved_data["biased"] = bias.has_value();
    context->saved_data["added"] = addend.has_value();
    return like_input(product_of(rows, weight.t(), {.bias = bias, .addend = addend}), x.sizes());
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    require_first_order();
    const auto saved = context->get_saved_variables();
    const at::Tensor &rows = saved[0], &weight = saved[1];
    const at::Tensor gradient = as_matrix(gradients[0]);
    variable_list result(4);
    if (context->needs_input_grad(0)) {
      result[0] = product_of(gradient, weight).view(context->saved_data["sizes"].toIntVector());
    }
    if (context->needs_input_grad(1)) result[1] = product_of(gradient.t(), rows);
    if (context->saved_data["biased"].toBool() && context->needs_input_grad(2)) result[2] = gradient.sum(0);
    if (context->saved_data["added"].toBool()) result[3] = gradients[0];
    return result;
  }
};

class FeedForwardFunction : public torch::autograd::Function<FeedForwardFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& up,
                            const std::optional<at::Tensor>& up_bias, const at::Tensor& down,
                            const std::optional<at::Tensor>& down_bias,
                            const std::optional<at::Tensor>& addend, std::int64_t f, bool keeps) {
    const at::Tensor rows = as_matrix(x);
    const Extras ends{.bias = down_bias, .addend = addend};
    Extras extras{.bias = up_bias, .pointwise = static_cast<Pointwise>(f)};
    if (!keeps) {
      const at::Tensor activated = product_of(rows, up.t(), extras);
      return like_input(product_of(activated, down.t(), ends), x.sizes());
    }
    const at::Tensor activated = extras.activated = at::empty({rows.size(0), up.size(0)}, rows.options());
    const at::Tensor slope = product_of(rows, up.t(), extras);
    context->save_for_backward({rows, up, down, slope, activated});
    context->saved_data["sizes"] = x.sizes().vec();
    context->saved_data["up_biased"] = up_bias.has_value();
    context->saved_data["down_biased"] = down_bias.has_value();
    context->saved_data["added"] = addend.has_value();
    return like_input(product_of(activated, down.t(), ends), x.sizes());
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    require_first_order();
    const auto saved = context->get_saved_variables();
    const at::Tensor &rows = saved[0], &up = saved[1], &down = saved[2];
    const at::Tensor &slope = saved[3], &activated = saved[4];
    const at::Tensor gradient = as_matrix(gradients[0]);
    variable_list result(8);
    const at::Tensor inner_gradient = product_of(gradient, down, {.times = slope});
    if (context->needs_input_grad(0)) {
      result[0] = product_of(inner_gradient, up).view(context->saved_data["sizes"].toIntVector());
    }
    if (context->needs_input_grad(1)) result[1] = product_of(inner_gradient.t(), rows);
    const bool up_biased = context->saved_data["up_biased"].toBool();
    if (up_biased) result[2] = inner_gradient.sum(0);
    // needs_input_grad does not count an absent bias.
    if (context->needs_input_grad(up_biased ? 3 : 2)) result[3] = product_of(gradient.t(), activated);
    if (context->saved_data["down_biased"].toBool()) result[4] = gradient.sum(0);
    if (context->saved_data["added"].toBool()) result[5] = gradients[0];
    return result;
  }
};

}  // namespace

bool is_mixed() {
  return at::autocast::is_autocast_enabled(at::kCPU) &&
         at::autocast::get_autocast_dtype(at::kCPU) == at::kBFloat16;
}

bool has_fast_linear(const at::Tensor& x, const at::Tensor& weight) {
  const bool mixed = is_mixed();
  const bool known = x.scalar_type() == at::kFloat || (mixed && x.scalar_type() == at::kBFloat16);
  if (!x.is_cpu() || !known || !weight.is_cpu() || weight.scalar_type() != at::kFloat || x.dim() < 2 ||
      x.numel() < kFewestRows * x.size(-1) || x.size(-1) != weight.size(1))
    return false;
  if (mixed) return has_bfloat16_products();
  return has_training_kernels() && !at::autocast::is_autocast_enabled(at::kCPU);
}

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  const at::Tensor& addend) {
  if (is_mixed()) return bfloat16_linear(x.to(at::kFloat), weight, bias, addend);
  return LinearFunction::apply(x, weight, given(bias), given(addend));
}

at::Tensor feed_forward(const at::Tensor& x, const FeedForwardWeights& weights, Pointwise f,
                        const at::Tensor& addend) {
  if (is_mixed()) return bfloat16_feed_forward(x.to(at::kFloat), weights, f, addend);
  return FeedForwardFunction::apply(
      x, weights.up, given(weights.up_bias), weights.down, given(weights.down_bias), given(addend),
      static_cast<std::int64_t>(f),
      wants_gradient({x, weights.up, weights.up_bias, weights.down, weights.down_bias}));
}

}  // namespace zoo::kernels
