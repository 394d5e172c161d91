#include "models/kernels/openmp.h"

// libgomp's ABI: the calls that GCC makes for #pragma omp, and OpenMP's own functions.
extern "C" {
void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags);
void GOMP_barrier();
int omp_get_thread_num();
int omp_get_num_threads();
int omp_get_num_procs();
}

namespace zoo::openmp {

void parallel(unsigned threads, c10::function_ref<void()> body) {
  GOMP_parallel([](void* data) { (*static_cast<c10::function_ref<void()>*>(data))(); }, &body, threads, 0);
}

void barrier() { GOMP_barrier(); }

unsigned thread_num() { return static_cast<unsigned>(omp_get_thread_num()); }

unsigned num_threads() { return static_cast<unsigned>(omp_get_num_threads()); }

unsigned num_procs() { return static_cast<unsigned>(omp_get_num_procs()); }

}  // namespace zoo::openmp
