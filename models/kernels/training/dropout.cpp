#include "models/kernels/training/dropout.h"

#include <cmath>
#include <mutex>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/kernels/cpu.h"
#include "models/kernels/parallel.h"
#include "models/kernels/training/rows.h"

namespace zoo::kernels {
namespace {

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
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, double rate,
                            std::int64_t seed) {
    context->saved_data["rate"] = rate;
    context->saved_data["seed"] = seed;
    return dropped(x, mask_of(rate, seed));
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
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

bool has_fast_dropout(const at::Tensor& x, double rate) {
  return x.is_cpu() && x.scalar_type() == at::kFloat && rate > 0 && rate < 1 && has_training_kernels();
}

at::Tensor dropout(const at::Tensor& x, double rate) { return DropoutFunction::apply(x, rate, draw_seed()); }

}  // namespace zoo::kernels
