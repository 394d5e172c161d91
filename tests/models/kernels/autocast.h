#pragma once

#include <ATen/autocast_mode.h>

/// Autocast on the CPU in its scope, as training in a 16-bit type uses it.
class Autocast {
 public:
  explicit Autocast(at::ScalarType dtype) : dtype_(at::autocast::get_autocast_dtype(at::kCPU)) {
    at::autocast::set_autocast_dtype(at::kCPU, dtype);
    at::autocast::set_autocast_enabled(at::kCPU, true);
  }
  ~Autocast() {
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::set_autocast_dtype(at::kCPU, dtype_);
    at::autocast::clear_cache();
  }

 private:
  at::ScalarType dtype_;
};

/// A float32 tensor as a product of bfloat16 rounds it, in double precision.
inline at::Tensor seen(const at::Tensor& x) {
  return x.detach().to(at::kFloat).to(at::kBFloat16).to(at::kDouble);
}
