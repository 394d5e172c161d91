#pragma once

#include <functional>

namespace zoo {

/// Runs a piece of a longer work: at once, or when its turn comes, as in a server.
using RunPiece = std::function<void(const std::function<void()>& piece)>;

inline void run_at_once(const std::function<void()>& piece) {
  piece();
}

}  // namespace zoo
