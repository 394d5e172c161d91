#include "apps/verbs/torch_options.h"

#include <iostream>
#include <thread>
#include <utility>

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include "data/base/error.h"

namespace zoo {

c10::Device device_of(const ComputeOptions& options) {
  if (options.device == "cpu") return c10::kCPU;  // without waking a GPU
  const bool has_cuda = at::hasCUDA() && at::globalContext().getAcceleratorHooksInterface().deviceCount() > 0;
  if (options.device == "auto" && !has_cuda) return c10::kCPU;
  if (!has_cuda)
    throw Error("--device ", options.device, ": this LibTorch or this machine has no CUDA device");
  // cuDNN's attention makes a plan for each new length, which takes longer than the step of a decoder.
  at::globalContext().setSDPUseCuDNN(false);
  c10::Device device(options.device == "auto" ? "cuda" : options.device);
  if (!device.has_index()) device = c10::Device(c10::kCUDA, 0);
  const auto count = at::globalContext().getAcceleratorHooksInterface().deviceCount();
  if (device.index() >= count)
    throw Error("--device ", options.device, ": there are ", int{count}, " CUDA devices");
  return device;
}

c10::ScalarType dtype_of(const ComputeOptions& options) {
  if (options.dtype == "bfloat16") return c10::kBFloat16;
  return options.dtype == "float16" ? c10::kHalf : c10::kFloat;
}

void apply_threads(const ComputeOptions& options) {
  if (!options.threads) return;
  const std::int64_t processors = std::thread::hardware_concurrency();
  static bool told = false;
  if (processors > 0 && *options.threads > processors && !std::exchange(told, true))
    std::cerr << "note: --threads " << *options.threads << " on " << processors
              << " processors: threads that wait for one another are slower than " << processors << "\n";
  at::set_num_threads(static_cast<int>(*options.threads));
}

}  // namespace zoo
