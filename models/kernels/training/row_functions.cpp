#include "models/kernels/training/row_functions.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
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

// Elements worth waking a thread for.
constexpr std::int64_t kGrain = 16'384;

std::int64_t rows_of(const at::Tensor& x) { return x.numel() / std::max<std::int64_t>(x.size(-1), 1); }

NormRows norm_rows(const at::Tensor& x, const at::Tensor& weight, const NormOptions& options) {
  return {.columns = size_of(x, -1),
          .centred = options.centred,
          .eps = static_cast<float>(options.eps),
          .x = x.const_data_ptr<float>(),
          .weight = weight.const_data_ptr<float>()};
}

// x is contiguous. statistics [rows, 2]; undefined: not saved.
at::Tensor forward_rows(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                        const NormOptions& options, const at::Tensor& statistics = {}) {
  at::Tensor result = at::empty_like(x);
  NormRows rows = norm_rows(x, weight, options);
  rows.bias = bias ? bias->const_data_ptr<float>() : nullptr;
  rows.result = result.mutable_data_ptr<float>();
  rows.statistics = statistics.defined() ? statistics.mutable_data_ptr<float>() : nullptr;
  const std::int64_t grain = std::max<std::int64_t>(1, kGrain / x.size(-1));
  parallel_for(0, rows_of(x), grain, [&](std::int64_t first, std::int64_t last) {
    normalize(rows, static_cast<std::size_t>(first), static_cast<std::size_t>(last));
  });
  return result;
}

// Sums over rows for the gradients of weight and bias. One sum for each block of rows, so that the result
// does not depend on the number of threads.
class BlockSums {
 public:
  BlockSums(std::int64_t rows, std::int64_t columns, bool wanted)
      : rows_(rows), block_rows_(std::max<std::int64_t>(16, (rows + kMostBlocks - 1) / kMostBlocks)) {
    if (wanted) sums_ = at::empty({blocks(), 2, columns});
  }

  std::int64_t blocks() const { return (rows_ + block_rows_ - 1) / block_rows_; }
  std::int64_t block_rows() const { return block_rows_; }

  float* of(std::int64_t block, std::int64_t which) const {
    return sums_.mutable_data_ptr<float>() + (2 * block + which) * sums_.size(2);
  }
  float* zeros_of(std::int64_t block, std::int64_t which) const {
    return std::fill_n(of(block, which), sums_.size(2), 0.0F) - sums_.size(2);
  }
  at::Tensor total(std::int64_t which) const {
    at::Tensor total = at::zeros({sums_.size(2)});
    auto* sums = total.mutable_data_ptr<float>();
    for (std::int64_t block = 0; block < blocks(); ++block) {
      const float* of_block = of(block, which);
      for (std::int64_t i = 0; i < sums_.size(2); ++i) sums[i] += of_block[i];
    }
    return total;
  }

 private:
  static constexpr std::int64_t kMostBlocks = 64;
  std::int64_t rows_, block_rows_;
  at::Tensor sums_;
};

class NormFunction : public torch::autograd::Function<NormFunction> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                               const std::optional<at::Tensor>& bias, bool centred, double eps, bool passes) {
    const at::Tensor rows = x.contiguous();
    const at::Tensor statistics = at::empty({rows_of(rows), 2}, rows.options());
    at::Tensor result = forward_rows(rows, weight, bias, {centred, eps}, statistics);
    context->save_for_backward({rows, weight, statistics});
    context->saved_data["centred"] = centred;
    context->saved_data["biased"] = bias.has_value();
    context->set_materialize_grads(false);
    if (passes) return {std::move(result), x};
    return {std::move(result)};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    require_first_order();
    variable_list result(6);
    if (!gradients[0].defined()) {
      if (gradients.size() > 1) result[0] = gradients[1];
      return result;
    }
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &statistics = saved[2];
    const bool for_x = context->needs_input_grad(0), for_weight = context->needs_input_grad(1),
               for_bias = context->saved_data["biased"].toBool() && context->needs_input_grad(2);
    const at::Tensor of_result = gradients[0].contiguous();
    const at::Tensor passed =
        gradients.size() > 1 && gradients[1].defined() ? gradients[1].contiguous() : at::Tensor();
    if (for_x) result[0] = at::empty_like(x);
    NormRows rows = norm_rows(x, weight, {context->saved_data["centred"].toBool(), 0});
    rows.statistics = statistics.mutable_data_ptr<float>();
    const BlockSums sums(rows_of(x), x.size(-1), for_weight || for_bias);
    const std::int64_t block_rows = sums.block_rows();
    parallel_for(0, sums.blocks(), std::max<std::int64_t>(1, kGrain / (block_rows * x.size(-1))),
                 [&](std::int64_t first, std::int64_t last) {
                   for (std::int64_t block = first; block < last; ++block) {
                     const NormGradients of_block{
                         .result = of_result.const_data_ptr<float>(),
                         .passed = passed.defined() ? passed.const_data_ptr<float>() : nullptr,
                         .x = for_x ? result[0].mutable_data_ptr<float>() : nullptr,
                         .weight = for_weight ? sums.zeros_of(block, 0) : nullptr,
                         .bias = for_bias ? sums.zeros_of(block, 1) : nullptr};
                     normalize_backward(
                         rows, of_block, static_cast<std::size_t>(block * block_rows),
                         static_cast<std::size_t>(std::min((block + 1) * block_rows, rows_of(x))));
                   }
                 });
    if (for_weight) result[1] = sums.total(0);
    if (for_bias) result[2] = sums.total(1);
    return result;
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

bool has_fast_norm(const at::Tensor& x, const at::Tensor& weight) {
  return x.is_cpu() && x.scalar_type() == at::kFloat && weight.is_cpu() &&
         weight.scalar_type() == at::kFloat && weight.is_contiguous() && x.dim() > 0 &&
         x.size(-1) == weight.numel() && has_training_kernels();
}

at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                const NormOptions& options) {
  if (!wants_gradient({x, weight, bias})) return forward_rows(x.contiguous(), weight, given(bias), options);
  return NormFunction::apply(x, weight, given(bias), options.centred, options.eps, false)[0];
}

NormedResidual normed_residual(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                               const NormOptions& options) {
  if (!wants_gradient({x, weight, bias})) return {x, norm(x, weight, bias, options)};
  const variable_list both = NormFunction::apply(x, weight, given(bias), options.centred, options.eps, true);
  return {both[1], both[0]};
}

}  // namespace zoo::kernels
