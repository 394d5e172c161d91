#pragma once

#include "apps/training/updater.h"

namespace zoo {

/// Throws Error if the machine has less memory than gradients, optimizer and average need besides the
/// weights. Warns on standard error if `activations`, an estimate in bytes, are too much beside them.
void check_memory(Objective& objective, const UpdaterOptions& options, std::int64_t activations);

/// Prints the resources that training needs, without training: parameters; memory of weights, gradients,
/// optimizer and average, and the machine's memory; memory and time of an update, measured on a few that are
/// discarded, and the time of as many as are asked for. Throws Error if the machine has less memory than
/// weights, gradients, optimizer and average need. Returns 0.
int dry_run(Objective& objective, const UpdaterOptions& options, std::int64_t updates);

}  // namespace zoo
