#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "data/tokens/token_file.h"

namespace zoo {

/// Ids [begin, begin + length) of a token file, each of which predicts the one after it.
struct DocumentPart {
  std::size_t begin = 0;
  std::int64_t length = 0;
};

/// The documents of a token file, each with the id `end` as its last. A document begins with the id `first`,
/// or else with the `end` of the one before it, from which its first id is predicted; one of more than
/// `longest` ids is cut into parts. Throws Error naming the file if it never holds `end`.
std::vector<DocumentPart> document_parts(const TokenFile& tokens, TokenId end, std::int64_t longest,
                                         std::optional<TokenId> first = std::nullopt);

/// Puts parts of these lengths into rows of `capacity`, the longest first, each into the fullest row that has
/// room for it (best-fit decreasing; Ding et al., 2024): for each row the indices of its parts. Throws Error
/// for a length that is not in [1, capacity].
std::vector<std::vector<std::size_t>> pack_best_fit(const std::vector<std::int64_t>& lengths,
                                                    std::int64_t capacity);

}  // namespace zoo
