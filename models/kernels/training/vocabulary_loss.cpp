#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/kernels/training/bfloat16_product.h"
#include "models/kernels/training/function_tensors.h"
#include "models/kernels/training/linear.h"
#include "models/kernels/training/operand.h"
#include "models/kernels/training/rows.h"

namespace zoo::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Bytes of logits computed at a time: they fit an L3 cache.
constexpr std::int64_t kLogitsBytes = std::int64_t{24} << 20;

// Those of frozen tensors are undefined.
struct Gradients {
  at::Tensor x, weight, bias;
};

// A chunk of the inputs' rows.
struct Chunk {
  at::Tensor x, logits;
  at::Tensor x_gradient;  // undefined: no gradient needed
  std::int64_t first_row;
};

class Losses {
 public:
  Losses(const at::Tensor& targets, double smoothing)
      : targets_(targets.contiguous()),
        smoothing_(static_cast<float>(smoothing)),
        losses_(static_cast<std::size_t>(targets.size(0))) {}

  /// Computes rows [first, last) of the chunk; the logits become their gradient, if needed.
  void compute(const Chunk& chunk, std::int64_t first, std::int64_t last) {
    const auto classes = chunk.logits.size(1);
    float* logits = chunk.logits.mutable_data_ptr<float>();
    const std::int64_t* targets = targets_.const_data_ptr<std::int64_t>() + chunk.first_row;
    const auto scale = 1.0F / static_cast<float>(losses_.size());
    for (std::int64_t row = first; row < last; ++row) {
      const LogitsRow logits_row{logits + row * classes, static_cast<std::size_t>(classes),
                                 static_cast<std::size_t>(targets[row]), smoothing_};
      losses_[static_cast<std::size_t>(chunk.first_row + row)] =
          chunk.x_gradient.defined() ? cross_entropy_with_gradient(logits_row, scale)
                                     : cross_entropy(logits_row);
    }
  }

  double mean() const {
    return std::accumulate(losses_.begin(), losses_.end(), 0.0) / static_cast<double>(losses_.size());
  }

 private:
  at::Tensor targets_;
  float smoothing_;
  std::vector<double> losses_;
};

// The weight, and the products with it.
class Projection {
 public:
  Projection(const at::Tensor& weight, std::optional<at::Tensor> bias, bool keeps, bool mixed)
      : weight_(Operand::of(weight, {.right = keeps, .right_transposed = true}, mixed)),
        bias_(std::move(bias)) {
    run_team([&](const Team& team) { weight_.pack(team); });
  }

  void run(const Chunk& chunk, Losses& losses, const Gradients& gradients) {
    const bool keeps = chunk.x_gradient.defined(), learns = gradients.weight.defined(), mixed = weight_.mixed;
    const Operand x = Operand::of(chunk.x, {.left = true, .right = learns}, mixed),
                  logits = Operand::of(chunk.logits, {.left = keeps, .right = learns}, mixed);
    run_products(x.rows * weight_.rows * weight_.columns, [&](const Team& team) {
      x.pack(team);
      team.wait();
      multiply({.a = x, .b = weight_, .transposed = Transposed::kRight, .bias = bias_}, chunk.logits, team);
      team.wait();
      const Team::Part rows = team.part_of(x.rows);
      losses.compute(chunk, static_cast<std::int64_t>(rows.first), static_cast<std::int64_t>(rows.last));
      if (!keeps) return;
      team.wait();
      logits.pack(team);
      team.wait();
      multiply({.a = logits, .b = weight_}, chunk.x_gradient, team);
      if (learns)
        multiply({.a = logits, .b = x, .transposed = Transposed::kLeft, .adds = true}, gradients.weight,
                 team);
    });
  }

 private:
  Operand weight_;
  std::optional<at::Tensor> bias_;
};

class VocabularyLoss : public torch::autograd::Function<VocabularyLoss> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, const at::Tensor& targets,
                            double smoothing, bool keeps, bool mixed) {
    const at::Tensor x = input.contiguous();
    const std::int64_t rows = x.size(0), classes = weight.size(0);
    Gradients gradients;
    if (keeps) {
      gradients.x = at::empty_like(x);
      if (weight.requires_grad()) gradients.weight = at::zeros_like(weight);
      if (bias && bias->requires_grad()) gradients.bias = at::zeros_like(*bias);
    }
    Projection projection(weight, bias, keeps, mixed);
    Losses losses(targets, smoothing);
    const std::int64_t step = rows_at_a_time(rows, classes);
    const at::Tensor logits = at::empty({step, classes}, x.options());
    for (std::int64_t first = 0; first < rows; first += step) {
      const std::int64_t last = std::min(first + step, rows);
      const Chunk chunk{x.slice(0, first, last), logits.slice(0, 0, last - first),
                        keeps ? gradients.x.slice(0, first, last) : at::Tensor(), first};
      projection.run(chunk, losses, gradients);
      if (gradients.bias.defined()) gradients.bias += chunk.logits.sum(0);
    }
    if (keeps) {
      context->saved_data["x"] = gradients.x;
      if (gradients.weight.defined()) context->saved_data["weight"] = gradients.weight;
      if (gradients.bias.defined()) context->saved_data["bias"] = gradients.bias;
    }
    return at::full({}, losses.mean(), x.options());
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
