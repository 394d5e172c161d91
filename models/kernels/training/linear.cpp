#include "models/kernels/training/linear.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include <ATen/autocast_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/kernels/cpu.h"
#include "models/kernels/training/bfloat16_product.h"
#include "models/kernels/training/function_tensors.h"
#include "models/kernels/training/operand.h"
#include "models/kernels/training/rows.h"

namespace zoo::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using OptionalTensor = std::optional<at::Tensor>;

constexpr std::int64_t kFewestRows = 16;

// The sum over a gradient's rows. In mixed precision, an empty tensor that packing the gradient fills.
at::Tensor bias_gradient(const at::Tensor& gradient, bool mixed) {
  return mixed ? at::empty({gradient.size(1)}, gradient.options()) : gradient.sum(0);
}

// Multiplications of one product of the rows with a weight.
std::size_t multiplications(const Operand& rows, const at::Tensor& weight) {
  return rows.rows * static_cast<std::size_t>(weight.numel());
}

bool autocasts_to_bfloat16() {
  return at::autocast::is_autocast_enabled(at::kCPU) &&
         at::autocast::get_autocast_dtype(at::kCPU) == at::kBFloat16;
}

class LinearFunction : public torch::autograd::Function<LinearFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const OptionalTensor& bias, const OptionalTensor& addend, bool mixed,
                            bool keeps) {
    const Operand input = Operand::of(as_matrix(x), {.left = true, .right = keeps}, mixed);
    const Operand factor = Operand::of(weight, {.right_transposed = true}, mixed);
    const at::Tensor result = at::empty({input.matrix.size(0), weight.size(0)}, x.options());
    run_products(multiplications(input, weight), [&](const Team& team) {
      input.pack(team);
      factor.pack(team);
      team.wait();
      multiply({.a = input, .b = factor, .transposed = Transposed::kRight, .bias = bias, .addend = addend},
               result, team);
    });
    context->save_for_backward({input.kept(), weight});
    context->saved_data["sizes"] = x.sizes().vec();
    context->saved_data["biased"] = bias.has_value();
    context->saved_data["added"] = addend.has_value();
    context->saved_data["mixed"] = mixed;
    return like_input(result, x.sizes());
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    require_first_order();
    const auto saved = context->get_saved_variables();
    const at::Tensor& weight = saved[1];
    const bool mixed = context->saved_data["mixed"].toBool();
    const bool for_x = context->needs_input_grad(0), for_weight = context->needs_input_grad(1),
               for_bias = context->saved_data["biased"].toBool() && context->needs_input_grad(2);
    const at::Tensor rows = as_matrix(gradients[0]);
    const Operand gradient = Operand::of(rows, {.left = for_x, .right = for_weight}, mixed);
    const Operand factor = Operand::of(weight, {.right = for_x}, mixed);
    const Operand input = Operand::from_kept(saved[0], gradient.rows, factor.columns, mixed);
    variable_list result(6);
    if (for_x) result[0] = at::empty(context->saved_data["sizes"].toIntVector(), rows.options());
    if (for_weight) result[1] = at::empty(weight.sizes(), weight.options());
    if (for_bias) result[2] = bias_gradient(rows, mixed);
    if (context->saved_data["added"].toBool()) result[3] = gradients[0];
    run_products(multiplications(gradient, weight), [&](const Team& team) {
      gradient.pack(team, result[2]);
      factor.pack(team);
      team.wait();
      if (for_x) multiply({.a = gradient, .b = factor}, result[0], team);
      if (for_weight) multiply({.a = gradient, .b = input, .transposed = Transposed::kLeft}, result[1], team);
    });
    return result;
  }
};

class FeedForwardFunction : public torch::autograd::Function<FeedForwardFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& up,
                            const OptionalTensor& up_bias, const at::Tensor& down,
                            const OptionalTensor& down_bias, const OptionalTensor& addend, std::int64_t f,
                            bool mixed, bool keeps) {
    const Roles roles{.left = true, .right = keeps};
    const Operand input = Operand::of(as_matrix(x), roles, mixed);
    const Operand up_factor = Operand::of(up, {.right_transposed = true}, mixed),
                  down_factor = Operand::of(down, {.right_transposed = true}, mixed);
    const Operand activated = Operand::empty(input.rows, up_factor.rows, roles, mixed);
    const at::Tensor slope = keeps ? activated.empty_slope() : at::Tensor();
    const at::Tensor result = at::empty({input.matrix.size(0), down.size(0)}, x.options());
    run_products(multiplications(input, up), [&](const Team& team) {
      input.pack(team);
      up_factor.pack(team);
      down_factor.pack(team);
      team.wait();
      multiply({.a = input,
                .b = up_factor,
                .transposed = Transposed::kRight,
                .bias = up_bias,
                .pointwise = static_cast<Pointwise>(f),
                .slope = slope},
               activated, team);
      team.wait();
      multiply({.a = activated,
                .b = down_factor,
                .transposed = Transposed::kRight,
                .bias = down_bias,
                .addend = addend},
               result, team);
    });
    context->save_for_backward({input.kept(), up, down, slope, activated.kept()});
    context->saved_data["sizes"] = x.sizes().vec();
    context->saved_data["up_biased"] = up_bias.has_value();
    context->saved_data["down_biased"] = down_bias.has_value();
    context->saved_data["added"] = addend.has_value();
    context->saved_data["mixed"] = mixed;
    return like_input(result, x.sizes());
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    require_first_order();
    const auto saved = context->get_saved_variables();
    const at::Tensor &up = saved[1], &down = saved[2], &slope = saved[3];
    variable_list result(9);
    if (context->saved_data["added"].toBool()) result[5] = gradients[0];
    if (!slope.defined()) return result;
    const bool mixed = context->saved_data["mixed"].toBool(),
               up_biased = context->saved_data["up_biased"].toBool(),
               down_biased = context->saved_data["down_biased"].toBool();
    // needs_input_grad does not count an absent bias.
    const bool for_x = context->needs_input_grad(0), for_up = context->needs_input_grad(1),
               for_down = context->needs_input_grad(up_biased ? 3 : 2);
    const at::Tensor rows = as_matrix(gradients[0]);
    const Operand gradient = Operand::of(rows, {.left = true, .right = for_down}, mixed);
    const Operand up_factor = Operand::of(up, {.right = for_x}, mixed),
                  down_factor = Operand::of(down, {.right = true}, mixed);
    const Operand inner =
        Operand::empty(gradient.rows, up_factor.rows, {.left = for_x, .right = for_up || up_biased}, mixed);
    const Operand input = Operand::from_kept(saved[0], gradient.rows, up_factor.columns, mixed),
                  activated = Operand::from_kept(saved[4], gradient.rows, up_factor.rows, mixed);
    if (for_x) result[0] = at::empty(context->saved_data["sizes"].toIntVector(), rows.options());
    if (for_up) result[1] = at::empty(up.sizes(), up.options());
    if (up_biased && mixed) result[2] = at::empty({up.size(0)}, up.options());
    if (for_down) result[3] = at::empty(down.sizes(), down.options());
    if (down_biased) result[4] = bias_gradient(rows, mixed);
    run_products(multiplications(gradient, up), [&](const Team& team) {
      gradient.pack(team, result[4]);
      down_factor.pack(team);
      up_factor.pack(team);
      team.wait();
      multiply({.a = gradient, .b = down_factor, .times = slope}, inner, team);
      if (for_down)
        multiply({.a = gradient, .b = activated, .transposed = Transposed::kLeft}, result[3], team);
      team.wait();
      if (for_x) multiply({.a = inner, .b = up_factor}, result[0], team);
      if (for_up) multiply({.a = inner, .b = input, .transposed = Transposed::kLeft}, result[1], team);
      if (up_biased && mixed) sum_rows(inner, result[2], team);
    });
    if (up_biased && !mixed) result[2] = inner.matrix.sum(0);
    return result;
  }
};

// Bytes of logits computed at a time: they fit an L3 cache.
constexpr std::int64_t kLogitsBytes = std::int64_t{24} << 20;

// A loss over the vocabulary and its gradients, computed chunk by chunk of the rows of x.
struct ChunkedLoss {
  at::Tensor x, targets;  // contiguous
  float smoothing;
  Operand weight;  // packed
  OptionalTensor bias;
  at::Tensor x_gradient, weight_gradient, bias_gradient;  // undefined: not needed
  std::vector<double> losses = std::vector<double>(size_of(targets, 0));

  // Computes the rows from number `first` on, as many as `logits` has, which are space for theirs.
  void run(const at::Tensor& logits, std::int64_t first) {
    const std::int64_t last = first + logits.size(0);
    const bool keeps = x_gradient.defined(), learns = weight_gradient.defined(), mixed = weight.mixed;
    const Operand rows = Operand::of(x.slice(0, first, last), {.left = true, .right = learns}, mixed),
                  gradient = Operand::of(logits, {.left = keeps, .right = learns}, mixed);
    const at::Tensor own_gradient = keeps ? x_gradient.slice(0, first, last) : at::Tensor();
    run_products(rows.rows * weight.rows * weight.columns, [&](const Team& team) {
      rows.pack(team);
      team.wait();
      multiply({.a = rows, .b = weight, .transposed = Transposed::kRight, .bias = bias}, logits, team);
      team.wait();
      compute(logits, static_cast<std::size_t>(first), team.part_of(rows.rows));
      if (!keeps) return;
      team.wait();
      gradient.pack(team);
      team.wait();
      multiply({.a = gradient, .b = weight}, own_gradient, team);
      if (learns)
        multiply({.a = gradient, .b = rows, .transposed = Transposed::kLeft, .adds = true}, weight_gradient,
                 team);
    });
    if (bias_gradient.defined()) bias_gradient += logits.sum(0);
  }

  // The losses of a part of the logits, which become their gradient, if needed.
  void compute(const at::Tensor& logits, std::size_t first, Team::Part part) {
    const std::size_t classes = size_of(logits, 1);
    float* all = logits.mutable_data_ptr<float>();
    const std::int64_t* target = targets.const_data_ptr<std::int64_t>() + first;
    const auto scale = 1.0F / static_cast<float>(losses.size());
    for (std::size_t row = part.first; row < part.last; ++row) {
      const LogitsRow own{all + row * classes, classes, static_cast<std::size_t>(target[row]), smoothing};
      losses[first + row] =
          x_gradient.defined() ? cross_entropy_with_gradient(own, scale) : cross_entropy(own);
    }
  }
};

class VocabularyLoss : public torch::autograd::Function<VocabularyLoss> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& weight,
                            const OptionalTensor& bias, const at::Tensor& targets, double smoothing,
                            bool keeps, bool mixed) {
    const std::int64_t rows = input.size(0), classes = weight.size(0);
    ChunkedLoss loss{.x = input.contiguous(),
                     .targets = targets.contiguous(),
                     .smoothing = static_cast<float>(smoothing),
                     .weight = Operand::of(weight, {.right = keeps, .right_transposed = true}, mixed),
                     .bias = bias};
    if (keeps) {
      loss.x_gradient = at::empty_like(loss.x);
      if (weight.requires_grad()) loss.weight_gradient = at::zeros_like(weight);
      if (bias && bias->requires_grad()) loss.bias_gradient = at::zeros_like(*bias);
    }
    run_team([&](const Team& team) { loss.weight.pack(team); });
    const std::int64_t step = rows_at_a_time(rows, classes);
    const at::Tensor logits = at::empty({step, classes}, loss.x.options());
    for (std::int64_t first = 0; first < rows; first += step)
      loss.run(logits.slice(0, 0, std::min(step, rows - first)), first);
    if (keeps) {
      context->saved_data["x"] = loss.x_gradient;
      if (loss.weight_gradient.defined()) context->saved_data["weight"] = loss.weight_gradient;
      if (loss.bias_gradient.defined()) context->saved_data["bias"] = loss.bias_gradient;
    }
    const double sum = std::accumulate(loss.losses.begin(), loss.losses.end(), 0.0);
    return at::full({}, sum / static_cast<double>(rows), input.options());
  }

  static variable_list backward(AutogradContext* context, variable_list upstream) {
    require_first_order();
    const double factor = upstream[0].item<double>();
    variable_list result(7);
    const auto take = [&](const char* name) {
      if (context->saved_data.count(name) == 0) return at::Tensor();
      at::Tensor gradient = context->saved_data[name].toTensor();
      // The backward pass may run again, and the gradient may by then be the parameter's own.
      return context->saved_data.erase(name), factor == 1.0 ? gradient : gradient.mul_(factor);
    };
    TORCH_CHECK(context->saved_data.count("x") > 0, "a loss over the vocabulary is differentiated once");
    result[0] = take("x");
    result[1] = take("weight");
    result[2] = take("bias");
    return result;
  }

 private:
  // Even chunks, so that the last one is not a small remainder.
  static std::int64_t rows_at_a_time(std::int64_t rows, std::int64_t classes) {
    const std::int64_t most = std::max<std::int64_t>(
        kPairTileRows, kLogitsBytes / (classes * static_cast<std::int64_t>(sizeof(float))));
    const std::int64_t parts = (rows + most - 1) / most;
    constexpr std::int64_t kUnit = 2 * kPairTileRows;
    return ((rows + parts - 1) / parts + kUnit - 1) / kUnit * kUnit;
  }
};

}  // namespace

bool is_mixed() { return autocasts_to_bfloat16() && has_bfloat16_products(); }

bool has_fast_linear(const at::Tensor& x, const at::Tensor& weight) {
  const bool autocasts = at::autocast::is_autocast_enabled(at::kCPU), to_bfloat16 = autocasts_to_bfloat16();
  const bool known = x.scalar_type() == at::kFloat || (to_bfloat16 && x.scalar_type() == at::kBFloat16);
  return x.is_cpu() && known && weight.is_cpu() && weight.scalar_type() == at::kFloat && x.dim() >= 2 &&
         x.numel() >= kFewestRows * x.size(-1) && x.size(-1) == weight.size(1) && autocasts == to_bfloat16 &&
         has_training_kernels();
}

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  const at::Tensor& addend) {
  return LinearFunction::apply(x.to(at::kFloat), weight, given(bias), given(addend), is_mixed(),
                               wants_gradient({x, weight, bias}));
}

at::Tensor feed_forward(const at::Tensor& x, const FeedForwardWeights& weights, Pointwise f,
                        const at::Tensor& addend) {
  const auto& [up, up_bias, down, down_bias] = weights;
  return FeedForwardFunction::apply(x.to(at::kFloat), up, given(up_bias), down, given(down_bias),
                                    given(addend), static_cast<std::int64_t>(f), is_mixed(),
                                    wants_gradient({x, up, up_bias, down, down_bias}));
}

at::Tensor vocabulary_loss(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                           const at::Tensor& targets, double smoothing) {
  const std::int64_t classes = weight.size(0);
  TORCH_CHECK(targets.dim() == 1 && targets.size(0) == x.size(0), "targets must be [", x.size(0), "], got ",
              targets.sizes());
  TORCH_CHECK(targets.ge(0).logical_and(targets.lt(classes)).all().item<bool>(), "targets must be in [0, ",
              classes, "), got ", targets.min().item<std::int64_t>(), " to ",
              targets.max().item<std::int64_t>());
  return VocabularyLoss::apply(x.to(at::kFloat), weight, given(bias), targets, smoothing,
                               wants_gradient({x, weight, bias}), is_mixed());
}

}  // namespace zoo::kernels
