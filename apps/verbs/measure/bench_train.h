#pragma once

#include "apps/command/arguments.h"

namespace zoo {

/// tzoo bench train: the time of an update and what it goes into, as JSON.
int run_bench_train(const Arguments& arguments);

}  // namespace zoo
