#pragma once

#include <functional>
#include <memory>

#include <c10/core/Device.h>

namespace zoo {

/// The kernels of a function, recorded once on a GPU and launched together (a CUDA graph): a decoder's step
/// of one token has some hundred kernels, each of which takes longer to launch than to run.
class DeviceGraph {
 public:
  /// False without a CUDA build of LibTorch, or if the zoo was built without the headers of CUDA's runtime.
  static bool available(c10::Device device);

  /// Runs `kernels` twice, so that libraries allocate what they need, and records it the third time. It must
  /// not copy from the host, wait for the device or draw random numbers; its tensors must outlive the graph.
  /// Throws c10::Error if it cannot be recorded.
  DeviceGraph(c10::Device device, const std::function<void()>& kernels);
  ~DeviceGraph();

  void replay();

 private:
  struct Recorded;
  std::unique_ptr<Recorded> recorded_;
};

}  // namespace zoo
