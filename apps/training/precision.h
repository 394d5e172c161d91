#pragma once

/// @file
/// Use:
///
///     const zoo::AutocastScope scope(at::kBFloat16, c10::kCPU);
///     const zoo::ModelOutput output = model->forward(inputs);

#include <ATen/autocast_mode.h>
#include <c10/core/Device.h>

#include "models/kernels/cpu.h"

namespace zoo {

/// True for bfloat16 on a CPU that is slower with it than in float32.
inline bool computes_in_float32(at::ScalarType dtype, c10::Device device) {
  return dtype == at::kBFloat16 && device.is_cpu() && kernels::trains_bfloat16_in_float32();
}

/// Mixed precision (Micikevicius et al., 2018) while in scope: matrix products in `dtype`, the rest in
/// float32. No effect with kFloat or a type that computes_in_float32().
class AutocastScope {
 public:
  AutocastScope(at::ScalarType dtype, c10::Device device)
      : device_(device.type()), active_(dtype != at::kFloat && !computes_in_float32(dtype, device)) {
    if (!active_) return;
    at::autocast::increment_nesting();
    was_enabled_ = at::autocast::is_autocast_enabled(device_);
    was_dtype_ = at::autocast::get_autocast_dtype(device_);
    at::autocast::set_autocast_dtype(device_, dtype);
    at::autocast::set_autocast_enabled(device_, true);
  }
  ~AutocastScope() {
    if (!active_) return;
    at::autocast::set_autocast_enabled(device_, was_enabled_);
    at::autocast::set_autocast_dtype(device_, was_dtype_);
    // The cache holds copies of the parameters in `dtype`; the next update makes them stale.
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  }
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  c10::DeviceType device_;
  bool active_, was_enabled_ = false;
  at::ScalarType was_dtype_ = at::kFloat;
};

}  // namespace zoo
