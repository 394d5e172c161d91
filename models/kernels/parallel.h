#pragma once

#include <cstdint>

#include <c10/util/FunctionRef.h>

namespace zoo {

/// Calls body(first, last) for parts of [begin, end), each at least `grain` long, on the threads of
/// torch::set_num_threads. at::parallel_for itself works on one thread alone in a file that is not compiled
/// for OpenMP, as ours are not: this one is.
void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain,
                  c10::function_ref<void(std::int64_t, std::int64_t)> body);

}  // namespace zoo
