#pragma once

/// @file
/// Use:
///
///     const zoo::AutocastScope scope(at::kHalf, c10::kCUDA);
///     zoo::GradScaler scaler({}, c10::kCUDA);
///     scaler.scaled(model->forward(inputs).loss).backward();
///     if (scaler.unscale(optimizer.gradients())) optimizer.step(/*learning_rate=*/1e-3);
///     scaler.adjust();

#include <vector>

#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "models/formats/safetensors.h"
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

/// Loss scaling for float16 (Micikevicius et al., 2018, section 3.2), as torch.amp.GradScaler. Small
/// gradients underflow to zero in float16, so the loss is multiplied by a scale and the gradients are divided
/// by it. After an overflow the update is skipped and the scale halved; after `growth_interval` good updates
/// in a row the scale is doubled.
class GradScaler {
 public:
  struct Options {
    double initial_scale = 65536.0;
    double growth = 2.0, backoff = 0.5;
    std::int64_t growth_interval = 2000;
  };

  GradScaler(const Options& options, c10::Device device);

  at::Tensor scaled(const at::Tensor& loss) const { return loss.mul(scale_); }

  /// Divides the gradients by the scale, in place. False if one is not finite: skip the update.
  bool unscale(const std::vector<at::Tensor>& gradients);

  /// Call once per update, after unscale().
  void adjust();

  double scale() const { return scale_.item<double>(); }

  /// "scaler.scale" and "scaler.growth_tracker".
  NamedTensors state() const {
    return {{"scaler.scale", scale_}, {"scaler.growth_tracker", growth_tracker_}};
  }
  /// Throws Error naming the file if these tensors are missing.
  void load_state(const SafetensorsFile& file) {
    for (auto& [name, tensor] : state()) tensor.copy_(file.tensor(name));
  }

 private:
  Options options_;
  at::Tensor scale_, growth_tracker_, found_inf_;
};

}  // namespace zoo
