#include "models/kernels/training/rotary.h"

#include <algorithm>

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/kernels/cpu.h"
#include "models/kernels/parallel.h"
#include "models/kernels/training/function_tensors.h"
#include "models/kernels/training/rows.h"

namespace zoo::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// [B, H, T, D], in memory token by token, as the projections have it.
at::Tensor turned(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, bool backward) {
  const std::int64_t batch = x.size(0), tokens = x.size(2);
  const at::Tensor result = at::empty({batch, tokens, x.size(1), x.size(3)}, x.options()).transpose(1, 2);
  const auto* from = x.const_data_ptr<float>();
  auto* to = result.mutable_data_ptr<float>();
  const auto *all_cos = cos.const_data_ptr<float>(), *all_sin = sin.const_data_ptr<float>();
  const std::int64_t tables = cos.dim() == 4 ? cos.stride(0) : 0, row = cos.stride(-2);
  constexpr std::int64_t kWorthWaking = 8192;  // elements
  const std::int64_t each = std::max<std::int64_t>(x.size(1) * x.size(3), 1);
  parallel_for(0, batch * tokens, std::max<std::int64_t>(1, kWorthWaking / each),
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t i = first; i < last; ++i) {
                   const std::int64_t b = i / tokens, t = i % tokens, table = b * tables + t * row;
                   rotate_heads({.heads = size_of(x, 1),
                                 .size = size_of(x, 3),
                                 .cos = all_cos + table,
                                 .sin = all_sin + table,
                                 .backward = backward},
                                from + b * x.stride(0) + t * x.stride(2),
                                static_cast<std::size_t>(x.stride(1)),
                                to + b * result.stride(0) + t * result.stride(2),
                                static_cast<std::size_t>(result.stride(1)));
                 }
               });
  return result;
}

class RotaryFunction : public torch::autograd::Function<RotaryFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& cos,
                            const at::Tensor& sin) {
    context->save_for_backward({cos, sin});
    return turned(x, cos, sin, /*backward=*/false);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    require_first_order();
    const variable_list tables = context->get_saved_variables();
    const at::Tensor passed = gradients[0].stride(-1) == 1 ? gradients[0] : gradients[0].contiguous();
    return {turned(passed, tables[0], tables[1], /*backward=*/true), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

bool has_fast_rotation(const at::Tensor& x, const at::Tensor& cos) {
  const bool floats = x.scalar_type() == at::kFloat && cos.scalar_type() == at::kFloat;
  const bool rows = x.dim() == 4 && x.stride(-1) == 1 && x.size(-1) == cos.size(-1) && cos.stride(-1) == 1 &&
                    cos.size(-2) == x.size(2);
  return has_training_kernels() && x.is_cpu() && floats && rows &&
         (cos.dim() == 2 || (cos.dim() == 4 && cos.size(0) == x.size(0) && cos.size(1) == 1));
}

at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  if (!wants_gradient({x})) return turned(x, cos, sin, /*backward=*/false);
  return RotaryFunction::apply(x, cos, sin);
}

}  // namespace zoo::kernels
