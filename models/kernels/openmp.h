#pragma once

#include <c10/util/FunctionRef.h>

namespace zoo::openmp {

/// Runs `body` on `threads` threads at once (0: as many as torch::set_num_threads says) and returns when all
/// have ended. `body` must not throw.
///
/// The threads are those of LibTorch's own OpenMP runtime, GCC's. It is called by its entry points, because
/// `#pragma omp` in a source that Clang compiles would start Clang's runtime, with threads of its own.
void parallel(unsigned threads, c10::function_ref<void()> body);

/// Waits until all threads of the parallel() that this thread is in have come here.
void barrier();

unsigned thread_num();   // of this thread in its parallel()
unsigned num_threads();  // of that parallel()
unsigned num_procs();    // processors that this process may use

}  // namespace zoo::openmp
