#pragma once

#include <cstdint>
#include <vector>

#include "data/base/error.h"

namespace zoo {

using TokenId = std::int32_t;
using TokenIds = std::vector<TokenId>;

/// Throws Error naming an id outside [0, vocab_size).
inline void require_id(TokenId id, std::int64_t vocab_size) {
  if (id < 0 || id >= vocab_size)
    throw Error("token id ", id, " is outside the vocabulary: expected 0 to ", vocab_size - 1);
}

}  // namespace zoo
