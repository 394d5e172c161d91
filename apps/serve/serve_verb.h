#pragma once

#include "apps/command/arguments.h"

namespace zoo {

/// `tzoo serve`: loads the models, answers requests until a signal stops it. Returns the exit code.
int run_serve(const Arguments& arguments);

}  // namespace zoo
