#pragma once

/// @file
/// Use:
///
///     zoo::GradScaler scaler({}, c10::kCPU);
///     scaler.scaled(loss).backward();
///     if (scaler.unscale(optimizer.gradients())) optimizer.step(/*learning_rate=*/1e-3);
///     scaler.adjust();

#include <vector>

#include <ATen/core/Tensor.h>

#include "models/formats/safetensors.h"

namespace zoo {

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

  at::Tensor scaled(const at::Tensor& loss) const;

  /// Divides the gradients by the scale, in place. False if one is not finite: skip the update.
  bool unscale(const std::vector<at::Tensor>& gradients);

  /// Call once per update, after unscale().
  void adjust();

  double scale() const;

  /// "scaler.scale" and "scaler.growth_tracker".
  NamedTensors state() const;
  /// Throws Error naming the file if these tensors are missing.
  void load_state(const SafetensorsFile& file);

 private:
  Options options_;
  at::Tensor scale_, growth_tracker_, found_inf_;
};

}  // namespace zoo
