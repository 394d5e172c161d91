#pragma once

#include <ATen/core/Tensor.h>

namespace zoo {

/// What the modules' constructors put into their parameters.
enum class ParameterInit {
  kDefault,        ///< torch::nn's own initial values, in its order: what a module on its own has
  kUninitialized,  ///< memory without values: a family draws its own, or a checkpoint fills it
  kDeferred,       ///< the shape without memory: set_data() gives it a checkpoint's tensor without a copy
  kMeta,           ///< on the meta device: to count a model that no machine here could hold
};

/// While it lives, modules made on this thread make their parameters so.
class ParameterScope {
 public:
  explicit ParameterScope(ParameterInit init);
  ~ParameterScope();
  ParameterScope(const ParameterScope&) = delete;
  ParameterScope& operator=(const ParameterScope&) = delete;

 private:
  ParameterInit outer_;
};

/// True when the parameters being made here should get values from their constructor.
bool parameters_want_default();

/// A float32 tensor of these sizes as the scope says; its values are not set.
at::Tensor make_parameter(at::IntArrayRef sizes);

}  // namespace zoo
