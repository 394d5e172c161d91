#pragma once

#include <ATen/core/Tensor.h>

namespace zoo {

/// Initial contents of the parameters that constructors make.
enum class ParameterInit {
  kDefault,        ///< torch::nn's own initial values, in its order: for a module on its own
  kUninitialized,  ///< uninitialised memory: a family draws values, or a checkpoint fills it
  kDeferred,       ///< a shape without memory: set_data() gives it a checkpoint's tensor without a copy
  kMeta,           ///< on the meta device: counts the parameters of a model too large for memory
};

/// While it lives, modules made on this thread create their parameters this way.
class ParameterScope {
 public:
  explicit ParameterScope(ParameterInit init);
  ~ParameterScope();
  ParameterScope(const ParameterScope&) = delete;
  ParameterScope& operator=(const ParameterScope&) = delete;

 private:
  ParameterInit outer_;
};

/// True if constructors must set default values in their parameters.
bool parameters_want_default();

/// Makes a float32 tensor of these sizes as the scope says; its values are not set.
at::Tensor make_parameter(at::IntArrayRef sizes);

}  // namespace zoo
