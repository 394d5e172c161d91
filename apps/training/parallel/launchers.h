#pragma once

namespace zoo {

/// For a process that belongs to no group. Throws Error if torchrun or Slurm's srun has started it as one of
/// several: each would train by itself, and nobody would notice.
void require_alone();

}  // namespace zoo
