#pragma once

#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

namespace zoo {

/// `size` elements of one of several tensors.
struct TensorPart {
  std::size_t tensor, first, size;
};

/// Parts of a few thousand elements, in the tensors' order: all of them make one loop for the threads,
/// however small a tensor is.
std::vector<TensorPart> parts_of(const std::vector<at::Tensor>& tensors);

/// Calls body(number) for the numbers of the parts, on all threads.
void for_each_part(const std::vector<TensorPart>& parts, c10::function_ref<void(std::size_t)> body);

/// Whether the kernels may read all of them: float32 without gaps, in the memory of a CPU that has them.
bool suit_kernels(const std::vector<at::Tensor>& tensors);

}  // namespace zoo
