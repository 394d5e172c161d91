#include "models/inference/frozen_weights.h"

#include <set>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "data/base/field_error.h"
#include "models/inference/packed_linear.h"
#include "models/inference/save_packed.h"
#include "models/layers/stack.h"
#include "models/model.h"

namespace zoo::inference {
namespace {

class FrozenProjection final : public FrozenWeight {
 public:
  FrozenProjection(const LinearImpl& linear, const StoredWeights& stored, WeightType type)
      : FrozenWeight(linear.weight.size(0), linear.weight.size(1)),
        packed_(linear.weight, stored.rows_of(linear.weight), at::Tensor(), {.weights = type}) {}

  at::Tensor floats(std::int64_t first, std::int64_t last) const override {
    static_assert(kUnit == kernels::kPanelOutputs);
    const at::Tensor rows = at::empty({last - first, inputs});
    auto* data = rows.mutable_data_ptr<float>();
    parallel_for(first / kUnit, (last + kUnit - 1) / kUnit, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t panel = begin; panel < end; ++panel)
        kernels::unpack_panel(packed_.weight(), static_cast<std::size_t>(panel),
                              data + (panel * kUnit - first) * inputs);
    });
    return rows;
  }

  std::size_t bytes() const override { return packed_.bytes(); }

 private:
  PackedLinear packed_;
};

}  // namespace

void freeze_projections(Model& model, const StoredWeights& stored, kernels::WeightType type) {
  if (model.config().num_experts > 0)
    throw FieldError(Field{"weights"}, " ", name_of(type),
                     ": mixtures of experts are trained in float32 only");
  std::set<const c10::TensorImpl*> frozen;
  for (const auto& part : model.modules(/*include_self=*/false)) {
    const auto* stack = part->as<TransformerStackImpl>();
    if (stack == nullptr) continue;
    for (const auto& inner : stack->blocks->modules()) {
      auto* linear = inner->as<LinearImpl>();
      if (linear == nullptr) continue;
      linear->frozen = std::make_shared<FrozenProjection>(*linear, stored, type);
      linear->weight.set_data(at::zeros({1}).expand(linear->weight.sizes()));
      frozen.insert(linear->weight.unsafeGetTensorImpl());
    }
  }
  for (const at::Tensor& parameter : model.parameters())
    if (!frozen.contains(parameter.unsafeGetTensorImpl())) stored.load(parameter);
}

std::int64_t frozen_bytes(const torch::nn::Module& module) {
  std::size_t bytes = 0;
  for (const auto& part : module.modules())
    if (const auto* linear = part->as<LinearImpl>(); linear != nullptr && linear->frozen)
      bytes += linear->frozen->bytes();
  return static_cast<std::int64_t>(bytes);
}

}  // namespace zoo::inference
