#include <memory>

#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "models/generation/graphs/device_graph.h"

namespace zoo {

bool can_record(c10::Device device) { return device.is_cuda(); }

std::function<void()> recorded(c10::Device device, const std::function<void()>& kernels) {
  const auto graph = std::make_shared<at::cuda::CUDAGraph>();
  const c10::impl::VirtualGuardImpl devices(device.type());
  devices.getStream(device).synchronize();
  // The default stream cannot be recorded.
  const c10::Stream stream = devices.getStreamFromGlobalPool(device);
  const c10::StreamGuard guard(stream);
  for (int i = 0; i < 2; ++i) kernels();
  stream.synchronize();
  graph->capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
  try {
    kernels();
  } catch (...) {
    try {
      graph->capture_end();        // or the stream would take no other work
    } catch (const c10::Error&) {  // the first fault is the one to tell
    }
    throw;
  }
  graph->capture_end();
  return [graph] { graph->replay(); };
}

}  // namespace zoo
