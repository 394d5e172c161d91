#pragma once

#include <memory>

#include "models/generation/token_loop.h"

namespace zoo {

/// generate() with options.draft (speculative sampling). Idea: reading several tokens takes the model hardly
/// longer than one, so a small model drafts some, the model reads them at once and accepts a prefix, by a
/// rule that leaves its distribution unchanged. A step does this for one row. Throws Error as generate()
/// does, and if the two models do not match.
std::unique_ptr<TokenLoop> drafting_loop(GenerationTask& task);

}  // namespace zoo
