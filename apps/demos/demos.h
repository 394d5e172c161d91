#pragma once

#include "apps/command/arguments.h"

namespace zoo {

// One file a demo: demo_embeddings is in embeddings.cpp. Each returns the exit code and throws what main
// prints.
int demo_embeddings(const Arguments& arguments);
int demo_ambiguous(const Arguments& arguments);
int demo_disagreement(const Arguments& arguments);

}  // namespace zoo
