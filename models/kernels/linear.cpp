#include "models/kernels/linear.h"

#include <algorithm>
#include <optional>

#include <ATen/autocast_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/kernels/cpu.h"
#include "models/kernels/matrix_product.h"
#include "models/kernels/parallel.h"

namespace zoo::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kFewestRows = 16;

std::size_t size_of(const at::Tensor& tensor, std::int64_t dim) {
  return static_cast<std::size_t>(tensor.size(dim));
}

Matrix view(const at::Tensor& matrix) {
  return {matrix.const_data_ptr<float>(), static_cast<std::size_t>(matrix.stride(0)),
          static_cast<std::size_t>(matrix.stride(1))};
}

// What happens to the result besides the product.
struct Extras {
  std::optional<at::Tensor> bias;
  Pointwise pointwise = Pointwise::kNone;
  at::Tensor activated, slope_at;
};

// On all threads, each with its own rows or columns of the result, whichever there are more of.
void multiply_in_parallel(const MatrixProduct& product) {
  const auto units_of = [](std::size_t size, std::size_t unit) {
    return static_cast<std::int64_t>((size + unit - 1) / unit);
  };
  const std::int64_t row_units = units_of(product.rows, kTileRows);
  const std::int64_t column_units = units_of(product.columns, kPanelColumns);
  const bool by_rows = row_units >= column_units;
  const std::int64_t units = by_rows ? row_units : column_units;
  // A thread is worth waking for 100,000 multiplications.
  const auto work = static_cast<std::int64_t>(product.rows * product.columns * product.depth) / units;
  const std::int64_t grain = std::max<std::int64_t>(1, 100'000 / std::max<std::int64_t>(work, 1));
  parallel_for(0, units, grain, [&](std::int64_t first, std::int64_t last) {
    Region region{0, product.rows, 0, product.columns};
    const auto begin = static_cast<std::size_t>(first), end = static_cast<std::size_t>(last);
    if (by_rows) {
      region.first_row = begin * kTileRows;
      region.last_row = std::min(end * kTileRows, product.rows);
    } else {
      region.first_column = begin * kPanelColumns;
      region.last_column = std::min(end * kPanelColumns, product.columns);
    }
    multiply(product, region);
  });
}

// a [M, K] times b [K, N], both with any strides.
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
  if (extras.activated.defined()) product.activated = extras.activated.mutable_data_ptr<float>();
  if (extras.slope_at.defined()) product.slope_at = extras.slope_at.const_data_ptr<float>();
  multiply_in_parallel(product);
  return result;
}

// [*, n] -> [rows, n]
at::Tensor as_matrix(const at::Tensor& x) {
  return x.contiguous().view({-1, x.size(-1)});
}

at::Tensor like_input(const at::Tensor& matrix, at::IntArrayRef input_sizes) {
  auto sizes = input_sizes.vec();
  sizes.back() = matrix.size(1);
  return matrix.view(sizes);
}

void require_first_order() {
  TORCH_CHECK(!at::GradMode::is_enabled(),
              "the CPU kernels have no second derivatives: no create_graph here");
}

class LinearFunction : public torch::autograd::Function<LinearFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias) {
    const at::Tensor rows = as_matrix(x);
    context->save_for_backward({rows, weight});
    context->saved_data["sizes"] = x.sizes().vec();
    context->saved_data["biased"] = bias.has_value();
    return like_input(product_of(rows, weight.t(), {.bias = bias}), x.sizes());
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    require_first_order();
    const auto saved = context->get_saved_variables();
    const at::Tensor &rows = saved[0], &weight = saved[1];
    const at::Tensor gradient = as_matrix(gradients[0]);
    variable_list result(3);
    if (context->needs_input_grad(0)) {
      result[0] = product_of(gradient, weight).view(context->saved_data["sizes"].toIntVector());
    }
    if (context->needs_input_grad(1)) result[1] = product_of(gradient.t(), rows);
    if (context->saved_data["biased"].toBool() && context->needs_input_grad(2)) result[2] = gradient.sum(0);
    return result;
  }
};

class FeedForwardFunction : public torch::autograd::Function<FeedForwardFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& up,
                            const std::optional<at::Tensor>& up_bias, const at::Tensor& down,
                            const std::optional<at::Tensor>& down_bias, std::int64_t f) {
    const at::Tensor rows = as_matrix(x);
    const at::Tensor activated = at::empty({rows.size(0), up.size(0)}, rows.options());
    const at::Tensor inner = product_of(
        rows, up.t(), {.bias = up_bias, .pointwise = static_cast<Pointwise>(f), .activated = activated});
    context->save_for_backward({rows, up, down, inner, activated});
    context->saved_data["sizes"] = x.sizes().vec();
    context->saved_data["f"] = f;
    context->saved_data["up_biased"] = up_bias.has_value();
    context->saved_data["down_biased"] = down_bias.has_value();
    return like_input(product_of(activated, down.t(), {.bias = down_bias}), x.sizes());
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    require_first_order();
    const auto saved = context->get_saved_variables();
    const at::Tensor &rows = saved[0], &up = saved[1], &down = saved[2];
    const at::Tensor &inner = saved[3], &activated = saved[4];
    const at::Tensor gradient = as_matrix(gradients[0]);
    const auto f = static_cast<Pointwise>(context->saved_data["f"].toInt());
    variable_list result(6);
    const at::Tensor inner_gradient = product_of(gradient, down, {.pointwise = f, .slope_at = inner});
    if (context->needs_input_grad(0)) {
      result[0] = product_of(inner_gradient, up).view(context->saved_data["sizes"].toIntVector());
    }
    if (context->needs_input_grad(1)) result[1] = product_of(inner_gradient.t(), rows);
    const bool up_biased = context->saved_data["up_biased"].toBool();
    if (up_biased) result[2] = inner_gradient.sum(0);
    // needs_input_grad does not count a bias that is not there.
    if (context->needs_input_grad(up_biased ? 3 : 2)) result[3] = product_of(gradient.t(), activated);
    if (context->saved_data["down_biased"].toBool()) result[4] = gradient.sum(0);
    return result;
  }
};

// A bias as the kernels take it; a Function takes no tensor that is not there.
std::optional<at::Tensor> given(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional<at::Tensor>(tensor.contiguous()) : std::nullopt;
}

}  // namespace

bool suits(const at::Tensor& x, const at::Tensor& weight) {
  return x.is_cpu() && x.scalar_type() == at::kFloat && weight.is_cpu() &&
         weight.scalar_type() == at::kFloat && x.dim() >= 2 && x.numel() >= kFewestRows * x.size(-1) &&
         x.size(-1) == weight.size(1) && supported_by_cpu() && !at::autocast::is_autocast_enabled(at::kCPU);
}

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return LinearFunction::apply(x, weight, given(bias));
}

at::Tensor feed_forward(const at::Tensor& x, const FeedForwardWeights& weights, Pointwise f) {
  return FeedForwardFunction::apply(x, weights.up, given(weights.up_bias), weights.down,
                                    given(weights.down_bias), static_cast<std::int64_t>(f));
}

}  // namespace zoo::kernels
