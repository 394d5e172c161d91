#include "models/kernels/bfloat16_linear.h"

#include <optional>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/kernels/function_tensors.h"
#include "models/kernels/packed/packed_pairs.h"
#include "models/kernels/parallel.h"

namespace zoo::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class Bfloat16LinearFunction : public torch::autograd::Function<Bfloat16LinearFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, const std::optional<at::Tensor>& addend,
                            bool keeps) {
    const at::Tensor rows = as_matrix(x);
    const PackedPairs input(rows, true, keeps);
    const at::Tensor factor = empty_transposed(weight);
    at::Tensor result = at::empty({rows.size(0), weight.size(0)}, rows.options());
    const PairProduct product = product_into(result, input.factor(), factor, input.columns, bias, addend);
    run_team([&](const Team& team) {
      input.pack(rows, team);
      pack_transposed(weight, factor, team);
      team.wait();
      multiply(product, team);
    });
    if (keeps) context->save_for_backward({input.by_panels, weight});
    context->saved_data["sizes"] = x.sizes().vec();
    context->saved_data["biased"] = bias.has_value();
    context->saved_data["added"] = addend.has_value();
    return like_input(result, x.sizes());
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    require_first_order();
    const auto saved = context->get_saved_variables();
    const at::Tensor &input = saved[0], &weight = saved[1];
    const at::Tensor rows = as_matrix(gradients[0]);
    const bool for_x = context->needs_input_grad(0), for_weight = context->needs_input_grad(1),
               for_bias = context->saved_data["biased"].toBool() && context->needs_input_grad(2);
    variable_list result(5);
    const PackedPairs gradient(rows, for_x, for_weight);
    const PackedPairs factor(weight, false, for_x);
    if (for_x) result[0] = at::empty({rows.size(0), weight.size(1)}, rows.options());
    if (for_weight) result[1] = at::empty_like(weight);
    if (for_bias) result[2] = at::empty({weight.size(0)}, weight.options());
    float* sums = for_bias ? result[2].mutable_data_ptr<float>() : nullptr;
    run_team([&](const Team& team) {
      gradient.pack(rows, team, sums);
      if (for_x) factor.pack(weight, team);
      team.wait();
      if (for_x)
        multiply(product_into(result[0], gradient.factor(), factor.by_panels, gradient.columns), team);
      if (for_weight) multiply(product_into(result[1], gradient.transposed(), input, gradient.rows), team);
    });
    if (for_x) result[0] = result[0].view(context->saved_data["sizes"].toIntVector());
    if (context->saved_data["added"].toBool()) result[3] = gradients[0];
    return result;
  }
};

class Bfloat16FeedForwardFunction : public torch::autograd::Function<Bfloat16FeedForwardFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& up,
                            const std::optional<at::Tensor>& up_bias, const at::Tensor& down,
                            const std::optional<at::Tensor>& down_bias,
                            const std::optional<at::Tensor>& addend, std::int64_t f, bool keeps) {
    const at::Tensor rows = as_matrix(x);
    const PackedPairs input(rows, true, keeps), activated(input.rows, size_of(up, 0), true, keeps);
    const at::Tensor up_factor = empty_transposed(up), down_factor = empty_transposed(down);
    const at::Tensor slope =
        keeps ? empty_pairs(pairs_by_rows(activated.rows, activated.columns)) : at::Tensor();
    at::Tensor result = at::empty({rows.size(0), down.size(0)}, rows.options());
    const PairProduct up_product{.rows = activated.rows,
                                 .columns = activated.columns,
                                 .pairs = pairs_of(input.columns),
                                 .a = input.factor(),
                                 .b = pairs(up_factor),
                                 .bias = up_bias ? up_bias->const_data_ptr<float>() : nullptr,
                                 .by_rows = pairs(activated.by_rows),
                                 .by_panels = pairs(activated.by_panels),
                                 .pointwise = static_cast<Pointwise>(f),
                                 .slope = pairs(slope)};
    const PairProduct down_product =
        product_into(result, activated.factor(), down_factor, activated.columns, down_bias, addend);
    run_team([&](const Team& team) {
      input.pack(rows, team);
      pack_transposed(up, up_factor, team);
      pack_transposed(down, down_factor, team);
      team.wait();
      multiply(up_product, team);
      team.wait();
      multiply(down_product, team);
    });
    if (keeps) context->save_for_backward({input.by_panels, up, down, slope, activated.by_panels});
    context->saved_data["sizes"] = x.sizes().vec();
    context->saved_data["up_biased"] = up_bias.has_value();
    context->saved_data["down_biased"] = down_bias.has_value();
    context->saved_data["added"] = addend.has_value();
    return like_input(result, x.sizes());
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    require_first_order();
    const auto saved = context->get_saved_variables();
    const at::Tensor &input = saved[0], &up = saved[1], &down = saved[2], &slope = saved[3],
                     &activated = saved[4];
    const at::Tensor rows = as_matrix(gradients[0]);
    const bool up_biased = context->saved_data["up_biased"].toBool(),
               down_biased = context->saved_data["down_biased"].toBool();
    variable_list result(8);
    result[0] = at::empty({rows.size(0), up.size(1)}, rows.options());
    result[1] = at::empty_like(up);
    if (up_biased) result[2] = at::empty({up.size(0)}, up.options());
    result[3] = at::empty_like(down);
    if (down_biased) result[4] = at::empty({down.size(0)}, down.options());

    const PackedPairs gradient(rows, true, true), inner_gradient(gradient.rows, size_of(up, 0), true, true);
    const PackedPairs down_factor(down, false, true), up_factor(up, false, true);
    const PairProduct inner_product{.rows = inner_gradient.rows,
                                    .columns = inner_gradient.columns,
                                    .pairs = pairs_of(gradient.columns),
                                    .a = gradient.factor(),
                                    .b = pairs(down_factor.by_panels),
                                    .by_rows = pairs(inner_gradient.by_rows),
                                    .by_panels = pairs(inner_gradient.by_panels),
                                    .times = pairs(slope)};
    run_team([&](const Team& team) {
      gradient.pack(rows, team, down_biased ? result[4].mutable_data_ptr<float>() : nullptr);
      down_factor.pack(down, team);
      up_factor.pack(up, team);
      team.wait();
      multiply(inner_product, team);
      multiply(product_into(result[3], gradient.transposed(), activated, gradient.rows), team);
      team.wait();
      multiply(product_into(result[0], inner_gradient.factor(), up_factor.by_panels, inner_gradient.columns),
               team);
      multiply(product_into(result[1], inner_gradient.transposed(), input, inner_gradient.rows), team);
      if (!up_biased) return;
      const Team::Part part = team.part_of(panels_of(inner_gradient.columns));
      sum_pairs(pairs(inner_gradient.by_panels), pairs_of(inner_gradient.rows),
                result[2].mutable_data_ptr<float>(), inner_gradient.columns, part.first, part.last);
    });
    result[0] = result[0].view(context->saved_data["sizes"].toIntVector());
    if (context->saved_data["added"].toBool()) result[5] = gradients[0];
    return result;
  }
};

}  // namespace

at::Tensor bfloat16_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                           const at::Tensor& addend) {
  return Bfloat16LinearFunction::apply(x, weight, given(bias), given(addend),
                                       wants_gradient({x, weight, bias}));
}

at::Tensor bfloat16_feed_forward(const at::Tensor& x, const FeedForwardWeights& weights, Pointwise f,
                                 const at::Tensor& addend) {
  const auto& [up, up_bias, down, down_bias] = weights;
  return Bfloat16FeedForwardFunction::apply(x, up, given(up_bias), down, given(down_bias), given(addend),
                                            static_cast<std::int64_t>(f),
                                            wants_gradient({x, up, up_bias, down, down_bias}));
}

}  // namespace zoo::kernels
