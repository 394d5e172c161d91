#include "apps/compute/threads.h"

#include <iostream>
#include <thread>
#include <utility>

#include <ATen/Parallel.h>

namespace zoo {

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
