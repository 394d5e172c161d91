#pragma once

#include <c10/util/FunctionRef.h>

namespace zoo::openmp {

/// Runs `body` on `threads` threads at once (0: torch::set_num_threads) and returns after all have ended.
/// `body` must not throw.
///
/// Uses LibTorch's OpenMP runtime, which is GCC's, through its entry points: `#pragma omp` in a source
/// compiled by Clang would start Clang's runtime and a second set of threads.
void parallel(unsigned threads, c10::function_ref<void()> body);

/// Waits until all threads of the current parallel() have arrived.
void barrier();

unsigned thread_num();   // index of this thread in its parallel()
unsigned num_threads();  // of that parallel()
unsigned num_procs();    // processors that this process may use

}  // namespace zoo::openmp
