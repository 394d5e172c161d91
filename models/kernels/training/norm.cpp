#include "models/kernels/training/norm.h"

#include <algorithm>
#include <optional>

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
