#pragma once

#include <cstdint>
#include <functional>

namespace zoo {

/// What a computation takes.
struct Cost {
  double seconds = 0;
  std::int64_t peak_bytes = 0;  // of tensors, beyond those that were there before
};

/// Runs it once or, if that was quick, until a twentieth of a second has passed: the shortest time, and the
/// memory of the first run. Counts what LibTorch's allocator gives to this thread.
Cost cost_of(const std::function<void()>& compute);

}  // namespace zoo
