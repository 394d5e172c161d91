#include <c10/util/Exception.h>

#include "models/generation/graphs/device_graph.h"

namespace zoo {

struct DeviceGraph::Recorded {};

bool DeviceGraph::available(c10::Device) { return false; }

DeviceGraph::DeviceGraph(c10::Device, const std::function<void()>&) {
  TORCH_CHECK(false, "this zoo was built without CUDA's headers: it cannot record a device's kernels");
}

DeviceGraph::~DeviceGraph() = default;

void DeviceGraph::replay() {}

}  // namespace zoo
