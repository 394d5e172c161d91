#pragma once

#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

namespace zoo {

/// `size` elements of one of several tensors.
struct TensorPart {
  std::size_t tensor, first, size;
};

/// Splits the tensors into parts of a few thousand elements, in order: threads share them in one loop.
std::vector<TensorPart> parts_of(const std::vector<at::Tensor>& tensors);

/// Calls body(index) for each part, on all threads.
void for_each_part(const std::vector<TensorPart>& parts, c10::function_ref<void(std::size_t)> body);

/// True if the kernels can process all: contiguous float32 tensors in the memory of a CPU that has them.
bool suit_kernels(const std::vector<at::Tensor>& tensors);

}  // namespace zoo
