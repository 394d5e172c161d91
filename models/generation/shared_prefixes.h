#pragma once

#include <vector>

#include "models/generation/decoding_session.h"

namespace zoo {

/// Rows of tokens that begin alike.
struct SharedPrefix {
  std::vector<std::size_t> rows;  // numbers of them
  std::size_t length = 0;         // of the beginning; 0 of a row that shares none
};

/// Divides rows, no two of them equal and none empty, into groups such that reading each group's beginning
/// once saves most tokens; what saves hardly more than another pass over the weights costs is left. Every row
/// has a token behind its beginning.
std::vector<SharedPrefix> shared_prefixes(const std::vector<TokenIds>& rows);

}  // namespace zoo
