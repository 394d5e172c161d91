#pragma once

#include <chrono>

namespace gloo {

/// Connections to all other ranks. LibTorch makes and owns it.
class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

}  // namespace gloo
