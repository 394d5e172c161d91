#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "models/formats/safetensors.h"

namespace zoo {

/// Loss scaling for float16 (Micikevicius et al., 2018, section 3.2), as torch.amp.GradScaler: small
/// gradients would be zero in float16, so the loss is multiplied by a scale and the gradients divided by it.
/// After an overflow the update is left out and the scale halved; after `growth_interval` good updates in a
/// row it is doubled.
class GradScaler {
 public:
  struct Options {
    double initial_scale = 65536.0;
    double growth = 2.0, backoff = 0.5;
    std::int64_t growth_interval = 2000;
  };

  GradScaler(const Options& options, c10::Device device);

  at::Tensor scaled(const at::Tensor& loss) const;

  /// Divides the gradients by the scale, in place. False if one of them is not finite: leave the update out.
  bool unscale(const std::vector<at::Tensor>& gradients);

  /// Once for each update, after unscale().
  void adjust();

  double scale() const;

  /// "scaler.scale" and "scaler.growth_tracker".
  NamedTensors state() const;
  /// Throws Error naming the file if it lacks them.
  void load_state(const SafetensorsFile& file);

 private:
  Options options_;
  at::Tensor scale_, growth_tracker_, found_inf_;
};

}  // namespace zoo
