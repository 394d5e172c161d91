#include "apps/training/parallel/launchers.h"

#include <cstdlib>

#include "data/base/environment.h"
#include "data/base/error.h"

namespace zoo {
namespace {

struct Launcher {
  const char *name, *size, *rank;  // its variables
};

constexpr Launcher kLaunchers[]{{"torchrun", "WORLD_SIZE", "RANK"}, {"srun", "SLURM_NTASKS", "SLURM_PROCID"}};

}  // namespace

void require_alone() {
  for (const auto& [name, size, rank] : kLaunchers) {
    const std::string said = environment(size);
    if (environment(rank).empty() || std::atoi(said.c_str()) <= 1) continue;
    throw Error(name, " has started this process as one of ", said, " (", size,
                "), but each would train by itself: start them with mpirun, or unset ", size,
                " for a process alone");
  }
}

}  // namespace zoo
