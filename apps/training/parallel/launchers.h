#pragma once

namespace zoo {

/// For a process without a group. Throws Error if torchrun or Slurm's srun started it as one of several:
/// otherwise each would silently train separately.
void require_alone();

}  // namespace zoo
