#include "models/kernels/training/gated_unit.h"

#include <algorithm>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/kernels/cpu.h"
#include "models/kernels/parallel.h"
#include "models/kernels/training/function_tensors.h"
#include "models/kernels/training/rows.h"

namespace zoo::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Calls body(rows, first, last) on all threads for parts of the rows of x, which is contiguous.
template <class Body> void for_rows_of(const at::Tensor& x, Pointwise f, const Body& body) {
  constexpr std::int64_t kWorthWaking = 8192;  // elements
  const GatedRows rows{.columns = size_of(x, -1) / 2, .f = f, .x = x.const_data_ptr<float>()};
  const std::int64_t width = std::max<std::int64_t>(x.size(-1), 1);
  parallel_for(0, x.numel() / width, std::max<std::int64_t>(1, kWorthWaking / width),
               [&](std::int64_t first, std::int64_t last) {
                 body(rows, static_cast<std::size_t>(first), static_cast<std::size_t>(last));
               });
}

at::Tensor gated(const at::Tensor& x, Pointwise f) {
  auto sizes = x.sizes().vec();
  sizes.back() /= 2;
  at::Tensor result = at::empty(sizes, x.options());
  auto* to = result.mutable_data_ptr<float>();
  for_rows_of(
      x, f, [&](const GatedRows& rows, std::size_t first, std::size_t last) { gate(rows, to, first, last); });
  return result;
}

class GatedUnitFunction : public torch::autograd::Function<GatedUnitFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, std::int64_t f) {
    context->save_for_backward({x});
    context->saved_data["f"] = f;
    return gated(x, static_cast<Pointwise>(f));
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    require_first_order();
    const at::Tensor x = context->get_saved_variables()[0], passed = gradients[0].contiguous();
    const auto f = static_cast<Pointwise>(context->saved_data["f"].toInt());
    at::Tensor gradient = at::empty_like(x);
    auto* to = gradient.mutable_data_ptr<float>();
    for_rows_of(x, f, [&](const GatedRows& rows, std::size_t first, std::size_t last) {
      gate_backward(rows, passed.const_data_ptr<float>(), to, first, last);
    });
    return {gradient, at::Tensor()};
  }
};

}  // namespace

bool has_fast_gated_unit(const at::Tensor& x) {
  return has_training_kernels() && x.is_cpu() && x.scalar_type() == at::kFloat;
}

at::Tensor gated_unit(const at::Tensor& x, Pointwise f) {
  const at::Tensor rows = x.contiguous();
  if (!wants_gradient({rows})) return gated(rows, f);
  return GatedUnitFunction::apply(rows, static_cast<std::int64_t>(f));
}

}  // namespace zoo::kernels
