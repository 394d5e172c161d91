#include "models/layers/recompute.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <c10/util/ScopeExit.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/layers/stack.h"

namespace zoo {
namespace {

std::vector<at::Generator> generators_of(c10::Device device) {
  std::vector<at::Generator> generators{at::detail::getDefaultCPUGenerator()};
  if (device.is_cuda()) generators.push_back(at::globalContext().defaultGenerator(device));
  return generators;
}

/// Non-tensor state of a forward pass: generators and autocast.
class RandomAndAutocast {
 public:
  explicit RandomAndAutocast(c10::Device device)
      : device_(device),
        autocasts_(at::autocast::is_autocast_enabled(device.type())),
        dtype_(at::autocast::get_autocast_dtype(device.type())) {
    for (at::Generator& generator : generators_of(device)) {
      const std::lock_guard<std::mutex> lock(generator.mutex());
      states_.push_back(generator.get_state());
    }
  }

  void restore() const {
    auto state = states_.begin();
    for (at::Generator& generator : generators_of(device_)) {
      const std::lock_guard<std::mutex> lock(generator.mutex());
      generator.set_state(*state++);
    }
    at::autocast::set_autocast_dtype(device_.type(), dtype_);
    at::autocast::set_autocast_enabled(device_.type(), autocasts_);
  }

 private:
  c10::Device device_;
  std::vector<at::Tensor> states_;
  bool autocasts_;
  at::ScalarType dtype_;
};

// Non-tensor inputs of the backward pass, in a form that the graph can hold.
struct RecomputedCall : torch::CustomClassHolder {
  RecomputedCall(RecomputedPart the_part, std::size_t input_count, c10::Device device)
      : part(std::move(the_part)), inputs(input_count), state(device), keeper(part_weights()) {}
  RecomputedPart part;
  std::size_t inputs;
  RandomAndAutocast state;
  PartWeights* keeper;
};

class Recompute : public torch::autograd::Function<Recompute> {
 public:
  // `tensors`: the inputs, then the parameters.
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context,
                                                at::TensorList tensors, const RecomputedPart& part,
                                                std::int64_t inputs) {
    const auto count = static_cast<std::size_t>(inputs);
    context->saved_data["call"] =
        c10::IValue::make_capsule(c10::make_intrusive<RecomputedCall>(part, count, tensors[0].device()));
    context->save_for_backward(tensors.vec());
    const PartScope scope(part_weights(), {tensors.begin() + inputs, tensors.end()});
    return part({tensors.begin(), tensors.begin() + inputs});
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto capsule = context->saved_data["call"].toCapsule();
    auto& call = static_cast<RecomputedCall&>(*capsule);
    torch::autograd::variable_list tensors = context->get_saved_variables(), wanted;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (i < call.inputs) tensors[i] = tensors[i].detach().requires_grad_(tensors[i].requires_grad());
      if (tensors[i].requires_grad()) wanted.push_back(tensors[i]);
    }
    const PartScope weights(call.keeper,
                            {tensors.begin() + static_cast<std::ptrdiff_t>(call.inputs), tensors.end()});
    torch::autograd::variable_list outputs;
    {
      const at::AutoGradMode with_graph(true);
      const RandomAndAutocast now(tensors[0].device());
      call.state.restore();
      at::autocast::increment_nesting();
      const auto restored = c10::make_scope_exit([&now] {
        if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
        now.restore();
      });
      outputs = call.part({tensors.begin(), tensors.begin() + static_cast<std::ptrdiff_t>(call.inputs)});
    }
    const auto found = torch::autograd::grad(outputs, wanted, gradients, /*retain_graph=*/false,
                                             /*create_graph=*/false, /*allow_unused=*/true);
    torch::autograd::variable_list result(tensors.size() + 2);  // no gradient for `part` and `inputs`
    std::size_t next = 0;
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i].requires_grad()) result[i] = found[next++];
    return result;
  }
};

}  // namespace

std::vector<at::Tensor> recompute(const RecomputedPart& part, const std::vector<at::Tensor>& inputs,
                                  const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> tensors = inputs;
  tensors.insert(tensors.end(), parameters.begin(), parameters.end());
  return Recompute::apply(at::TensorList(tensors), part, static_cast<std::int64_t>(inputs.size()));
}

PartWeights*& part_weights() {
  thread_local PartWeights* keeper = nullptr;
  return keeper;
}

void recompute_blocks(torch::nn::Module& module, bool recomputes) {
  for (const auto& part : module.modules(/*include_self=*/false))
    if (auto* stack = part->as<TransformerStackImpl>()) stack->recompute_blocks(recomputes);
}

}  // namespace zoo
