#pragma once

namespace zoo::kernels {

/// While one lives, has_training_kernels() is false on this thread, so that LibTorch's operators compute.
class Tracing {
 public:
  Tracing() : outer_(active_) { active_ = true; }
  ~Tracing() { active_ = outer_; }
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;

  static bool is_active() { return active_; }

 private:
  static inline thread_local bool active_ = false;
  bool outer_;
};

}  // namespace zoo::kernels
