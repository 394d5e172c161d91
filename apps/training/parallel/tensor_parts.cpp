#include "apps/training/parallel/tensor_parts.h"

#include <algorithm>

#include "models/kernels/cpu.h"
#include "models/kernels/parallel.h"

namespace zoo {

std::vector<TensorPart> parts_of(const std::vector<at::Tensor>& tensors) {
  constexpr std::size_t kPart = 4096;
  std::vector<TensorPart> parts;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto size = static_cast<std::size_t>(tensors[i].numel());
    for (std::size_t first = 0; first < size; first += kPart)
      parts.push_back({i, first, std::min(kPart, size - first)});
  }
  return parts;
}

void for_each_part(const std::vector<TensorPart>& parts, c10::function_ref<void(std::size_t)> body) {
  constexpr std::int64_t kGrain = 4;  // minimum number of parts per thread
  parallel_for(0, std::ssize(parts), kGrain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) body(static_cast<std::size_t>(i));
  });
}

bool suit_kernels(const std::vector<at::Tensor>& tensors) {
  return kernels::has_training_kernels() && std::ranges::all_of(tensors, [](const at::Tensor& x) {
           return x.is_cpu() && x.scalar_type() == at::kFloat && x.is_contiguous();
         });
}

}  // namespace zoo
