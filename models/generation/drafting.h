#pragma once

#include <memory>

#include "models/generation/token_loop.h"

namespace zoo {

/// generate() with options.draft; a step drafts and reads tokens of one row. Throws Error as it does, and if
/// the two models do not match.
std::unique_ptr<TokenLoop> drafting_loop(GenerationTask& task);

}  // namespace zoo
