#include "models/kernels/parallel.h"

#include <ATen/Parallel.h>

namespace zoo {

void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain,
                  c10::function_ref<void(std::int64_t, std::int64_t)> body) {
  at::parallel_for(begin, end, grain, body);
}

}  // namespace zoo
