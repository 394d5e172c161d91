#pragma once

#include <functional>

#include <c10/core/Device.h>

namespace zoo {

/// False without a CUDA build of LibTorch, or if the zoo was built without the headers of CUDA's runtime.
bool can_record(c10::Device device);

/// A function that launches the kernels of another together, as they were recorded once on a GPU (a CUDA
/// graph): a decoder's step of one token has some hundred, each of which takes longer to launch than to run.
/// Runs `kernels` twice, so that libraries allocate what they need, and records the third time. It must not
/// copy from the host, wait for the device or draw random numbers; its tensors must outlive the result.
/// Throws c10::Error if it cannot be recorded.
std::function<void()> recorded(c10::Device device, const std::function<void()>& kernels);

}  // namespace zoo
