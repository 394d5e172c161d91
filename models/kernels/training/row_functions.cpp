#include "models/kernels/training/row_functions.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include <ATen/CPUGeneratorImpl.h>
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

// Calls body(first, last) for parts of `count` rows of this many elements, on all threads that are worth
// waking.
template <class Body> void parallel_rows(std::int64_t count, std::int64_t elements, const Body& body) {
  constexpr std::int64_t kWorthWaking = 8192;  // elements
  parallel_for(0, count, std::max<std::int64_t>(1, kWorthWaking / elements), body);
}

// Calls body(rows, first, last) on all threads for parts of the rows of x, which is contiguous.
template <class Body> void for_rows_of(const at::Tensor& x, Pointwise f, const Body& body) {
  const GatedRows rows{.columns = size_of(x, -1) / 2, .f = f, .x = x.const_data_ptr<float>()};
  const std::int64_t width = std::max<std::int64_t>(x.size(-1), 1);
  parallel_rows(x.numel() / width, width, [&](std::int64_t first, std::int64_t last) {
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

// [B, H, T, D], in memory token by token, as the projections have it.
at::Tensor turned(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, bool backward) {
  const std::int64_t batch = x.size(0), tokens = x.size(2);
  const at::Tensor result = at::empty({batch, tokens, x.size(1), x.size(3)}, x.options()).transpose(1, 2);
  const auto* from = x.const_data_ptr<float>();
  auto* to = result.mutable_data_ptr<float>();
  const auto *all_cos = cos.const_data_ptr<float>(), *all_sin = sin.const_data_ptr<float>();
  const std::int64_t tables = cos.dim() == 4 ? cos.stride(0) : 0, row = cos.stride(-2);
  const std::int64_t each = std::max<std::int64_t>(x.size(1) * x.size(3), 1);
  parallel_rows(batch * tokens, each, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t b = i / tokens, t = i % tokens, table = b * tables + t * row;
      rotate_heads({.heads = size_of(x, 1),
                    .size = size_of(x, 3),
                    .cos = all_cos + table,
                    .sin = all_sin + table,
                    .backward = backward},
                   from + b * x.stride(0) + t * x.stride(2), static_cast<std::size_t>(x.stride(1)),
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

at::Tensor dropped(const at::Tensor& given, const DropoutMask& mask) {
  const at::Tensor x = given.contiguous();
  at::Tensor result = at::empty_like(x);
  const auto size = static_cast<std::size_t>(x.numel());
  const std::size_t blocks = (size + kMaskBlock - 1) / kMaskBlock;
  const float* from = x.const_data_ptr<float>();
  float* to = result.mutable_data_ptr<float>();
  constexpr std::int64_t kGrain = 256;  // blocks worth waking a thread for
  parallel_for(0, static_cast<std::int64_t>(blocks), kGrain, [&](std::int64_t first, std::int64_t last) {
    apply(mask, from, to, size, static_cast<std::size_t>(first), static_cast<std::size_t>(last));
  });
  return result;
}

class DropoutFunction : public torch::autograd::Function<DropoutFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, double rate, std::int64_t seed) {
    context->saved_data["rate"] = rate;
    context->saved_data["seed"] = seed;
    return dropped(x, mask_of(rate, seed));
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const double rate = context->saved_data["rate"].toDouble();
    const auto seed = context->saved_data["seed"].toInt();
    return {DropoutFunction::apply(gradients[0], rate, seed), at::Tensor(), at::Tensor()};
  }

 private:
  static DropoutMask mask_of(double rate, std::int64_t seed) {
    return {.seed = static_cast<std::uint64_t>(seed),
            .threshold = static_cast<std::uint32_t>(std::ldexp(rate, 32)),
            .scale = static_cast<float>(1.0 / (1.0 - rate))};
  }
};

std::int64_t draw_seed() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  return static_cast<std::int64_t>(at::check_generator<at::CPUGeneratorImpl>(generator)->random64());
}

}  // namespace

bool has_fast_gated_unit(const at::Tensor& x) {
  return has_training_kernels() && x.is_cpu() && x.scalar_type() == at::kFloat;
}

at::Tensor gated_unit(const at::Tensor& x, Pointwise f) {
  const at::Tensor rows = x.contiguous();
  if (!wants_gradient({rows})) return gated(rows, f);
  return GatedUnitFunction::apply(rows, static_cast<std::int64_t>(f));
}

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

bool has_fast_dropout(const at::Tensor& x, double rate) {
  return x.is_cpu() && x.scalar_type() == at::kFloat && rate > 0 && rate < 1 && has_training_kernels();
}

at::Tensor dropout(const at::Tensor& x, double rate) { return DropoutFunction::apply(x, rate, draw_seed()); }

}  // namespace zoo::kernels
