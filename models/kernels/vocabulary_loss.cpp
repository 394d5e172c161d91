#include "models/kernels/vocabulary_loss.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/kernels/cross_entropy.h"
#include "models/kernels/function_tensors.h"
#include "models/kernels/linear.h"
#include "models/kernels/packed/packed_pairs.h"
#include "models/kernels/parallel.h"
#include "models/kernels/parallel_product.h"

namespace zoo::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Bytes of logits computed at a time: they fit an L3 cache.
constexpr std::int64_t kLogitsBytes = std::int64_t{24} << 20;

struct Gradients {
  at::Tensor x, weight, bias;
};

// Some rows of the inputs.
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

// Products of one precision.
class Projection {
 public:
  virtual ~Projection() = default;
  virtual void run(const Chunk& chunk, Losses& losses, const Gradients& gradients) = 0;
};

class FloatProjection : public Projection {
 public:
  FloatProjection(at::Tensor weight, std::optional<at::Tensor> bias)
      : weight_(std::move(weight)), bias_(std::move(bias)) {}

  void run(const Chunk& chunk, Losses& losses, const Gradients& gradients) override {
    multiply_into(chunk.logits, chunk.x, weight_.t(), bias_ ? bias_->const_data_ptr<float>() : nullptr);
    parallel_for(0, chunk.x.size(0), 1,
                 [&](std::int64_t first, std::int64_t last) { losses.compute(chunk, first, last); });
    if (!chunk.x_gradient.defined()) return;
    multiply_into(chunk.x_gradient, chunk.logits, weight_);
    multiply_into(gradients.weight, chunk.logits.t(), chunk.x, nullptr, /*adds=*/true);
  }

 private:
  static void multiply_into(const at::Tensor& result, const at::Tensor& a, const at::Tensor& b,
                            const float* bias = nullptr, bool adds = false) {
    multiply_in_parallel({.rows = size_of(a, 0),
                          .columns = size_of(b, 1),
                          .depth = size_of(a, 1),
                          .a = view(a),
                          .b = view(b),
                          .result = result.mutable_data_ptr<float>(),
                          .result_row = size_of(b, 1),
                          .bias = bias,
                          .adds = adds});
  }

  at::Tensor weight_;
  std::optional<at::Tensor> bias_;
};

class Bfloat16Projection : public Projection {
 public:
  Bfloat16Projection(const at::Tensor& weight, std::optional<at::Tensor> bias, bool keeps)
      : bias_(std::move(bias)), transposed_(empty_transposed(weight)), weight_(weight, false, keeps) {
    run_team([&](const Team& team) {
      pack_transposed(weight, transposed_, team);
      if (keeps) weight_.pack(weight, team);
    });
  }

  void run(const Chunk& chunk, Losses& losses, const Gradients& gradients) override {
    const bool keeps = chunk.x_gradient.defined();
    const PackedPairs x(chunk.x, true, keeps), logits(chunk.logits, keeps, keeps);
    run_team([&](const Team& team) {
      x.pack(chunk.x, team);
      team.wait();
      multiply(product_into(chunk.logits, x.factor(), transposed_, x.columns, bias_), team);
      team.wait();
      const Team::Part rows = team.part_of(x.rows);
      losses.compute(chunk, static_cast<std::int64_t>(rows.first), static_cast<std::int64_t>(rows.last));
      if (!keeps) return;
      team.wait();
      logits.pack(chunk.logits, team);
      team.wait();
      multiply(product_into(chunk.x_gradient, logits.factor(), weight_.by_panels, logits.columns), team);
      PairProduct product = product_into(gradients.weight, logits.transposed(), x.by_panels, x.rows);
      product.adds = true;
      multiply(product, team);
    });
  }

 private:
  std::optional<at::Tensor> bias_;
  at::Tensor transposed_;
  PackedPairs weight_;
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
      gradients.weight = at::zeros_like(weight);
      if (bias) gradients.bias = at::zeros_like(*bias);
    }
    std::unique_ptr<Projection> projection;
    if (mixed) {
      projection = std::make_unique<Bfloat16Projection>(weight, bias, keeps);
    } else {
      projection = std::make_unique<FloatProjection>(weight, bias);
    }
    Losses losses(targets, smoothing);
    const std::int64_t step = rows_at_a_time(rows, classes);
    const at::Tensor logits = at::empty({step, classes}, x.options());
    for (std::int64_t first = 0; first < rows; first += step) {
      const std::int64_t last = std::min(first + step, rows);
      const Chunk chunk{x.slice(0, first, last), logits.slice(0, 0, last - first),
                        keeps ? gradients.x.slice(0, first, last) : at::Tensor(), first};
      projection->run(chunk, losses, gradients);
      if (gradients.bias.defined()) gradients.bias += chunk.logits.sum(0);
    }
    if (keeps) {
      context->saved_data["x"] = gradients.x;
      context->saved_data["weight"] = gradients.weight;
      if (bias) context->saved_data["bias"] = gradients.bias;
    }
    return at::full({}, losses.mean(), x.options());
  }

  static variable_list backward(AutogradContext* context, variable_list upstream) {
    require_first_order();
    const double factor = upstream[0].item<double>();
    variable_list result(7);
    const auto take = [&](const char* name) {
      at::Tensor gradient = context->saved_data[name].toTensor();
      // The backward pass may run again, and the gradient may by then be the parameter's own.
      return context->saved_data.erase(name), factor == 1.0 ? gradient : gradient.mul_(factor);
    };
    TORCH_CHECK(context->saved_data.count("x") > 0, "a loss over the vocabulary is differentiated once");
    const bool biased = context->saved_data.count("bias") > 0;
    result[0] = take("x");
    result[1] = take("weight");
    if (biased) result[2] = take("bias");
    return result;
  }

 private:
  // As even as possible, so that the last part is not a small remainder.
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
  const bool keeps = at::GradMode::is_enabled() && (x.requires_grad() || weight.requires_grad() ||
                                                    (bias.defined() && bias.requires_grad()));
  return VocabularyLoss::apply(x.to(at::kFloat), weight, given(bias), targets, smoothing, keeps, is_mixed());
}

}  // namespace zoo::kernels
