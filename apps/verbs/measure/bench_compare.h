#pragma once

#include "apps/command/arguments.h"

namespace zoo {

/// tzoo bench compare: what this machine's memory and products allow, and what decoding, reading a prompt and
/// training reach of it.
int run_bench_compare(const Arguments& arguments);

}  // namespace zoo
