#pragma once

#include "apps/command/verbs.h"

namespace zoo {

/// `tzoo tokenizer train`.
int train_tokenizer(const Arguments& arguments);

}  // namespace zoo
