#include <cstdlib>

#include "apps/training/parallel/data_parallel.h"
#include "apps/training/parallel/launchers.h"
#include "data/base/error.h"

namespace zoo {

ParallelSession::ParallelSession() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* size = std::getenv(variable);
    if (size != nullptr && std::atoi(size) > 1)
      throw Error(
          "started by mpirun as one of ", size,
          " processes, but tzoo was built without MPI; build it again with Debian's package libopenmpi-dev");
  }
  require_alone();
}

ParallelSession::~ParallelSession() = default;

std::unique_ptr<Ranks> ParallelSession::ranks_for(torch::nn::Module&) const {
  return nullptr;
}

}  // namespace zoo
