#include "models/layers/parameter.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

namespace zoo {
namespace {

thread_local ParameterInit current_init = ParameterInit::kDefault;

}  // namespace

ParameterScope::ParameterScope(ParameterInit init) : outer_(current_init) { current_init = init; }
ParameterScope::~ParameterScope() { current_init = outer_; }

bool parameters_want_default() { return current_init == ParameterInit::kDefault; }

at::Tensor make_parameter(at::IntArrayRef sizes) {
  switch (current_init) {
    case ParameterInit::kMeta: return at::empty(sizes, at::TensorOptions().device(at::kMeta));
    // One element expanded to every index: unlike a meta tensor, a CPU tensor accepts other data later.
    case ParameterInit::kDeferred: return at::zeros({1}).expand(sizes);
    default: return at::empty(sizes);
  }
}

}  // namespace zoo
