#pragma once

#include <vector>

#include "models/generation/decoding_session.h"

namespace zoo {

/// Rows that share a prefix.
struct SharedPrefix {
  std::vector<std::size_t> rows;  // row numbers
  std::size_t length = 0;         // of the prefix; 0 for a row that shares none
};

/// Groups rows, which must be distinct and non-empty, so that reading each group's prefix once saves the most
/// tokens. Idea: in sorted order, rows with a common prefix are neighbours; a recursion divides them where
/// that saves more. Ignores savings that hardly exceed the cost of another pass. Every row has a token after
/// its prefix.
std::vector<SharedPrefix> shared_prefixes(const std::vector<TokenIds>& rows);

}  // namespace zoo
