#pragma once

#include "apps/training/updater.h"

namespace zoo {

/// Prints what a training takes, before its first update: parameters; memory of weights, gradients, optimizer
/// and average beside what the machine has; memory and time of an update, measured on a few that are not
/// kept. Throws Error if the machine has less memory than the weights and what belongs to them need. Returns
/// 0.
int dry_run(Objective& objective, const UpdaterOptions& options);

}  // namespace zoo
