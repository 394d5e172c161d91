#pragma once

#include "apps/command/arguments.h"

namespace zoo {

/// tzoo bench train: prints the time of an update and of its parts as JSON.
int run_bench_train(const Arguments& arguments);

}  // namespace zoo
