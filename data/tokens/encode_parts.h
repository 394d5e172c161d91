#pragma once

/// @file
/// Use:
///
///     zoo::TokenIds all;
///     const auto take = [&](std::span<const zoo::TokenId> ids, std::size_t) {
///       all.insert(all.end(), ids.begin(), ids.end());
///     };
///     zoo::encode_in_parts(text, zoo::TextEncoder::of(tokenizer), /*threads=*/0, take);

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>

#include "tokenizer/tokenizer.h"

namespace zoo {

/// Receives the ids of a text's next part, and the number of bytes encoded so far.
using TakeIds = std::function<void(std::span<const TokenId> ids, std::size_t bytes)>;

/// How the parts of a text become ids; threads call encode() at the same time.
struct TextEncoder {
  /// The first position from `from` on at which the text can be divided; its end if there is none.
  std::function<std::size_t(std::string_view text, std::size_t from)> division;
  std::function<TokenIds(std::string_view part)> encode;

  /// By Tokenizer::division() and encode(); refers to the tokenizer.
  static TextEncoder of(const Tokenizer& tokenizer);
};

/// Encodes a UTF-8 text on this many threads; 0: one per processor. This thread calls take() in the text's
/// order; memory holds the ids of a few parts for each thread. Throws what the encoder or take() throws.
void encode_in_parts(std::string_view text, const TextEncoder& encoder, std::size_t threads,
                     const TakeIds& take);

}  // namespace zoo
