#pragma once

/// @file
/// Use:
///
///     const zoo::Encoding encoding = tokenizer.encode(text, {.max_length = 128});
///     for (std::size_t i = 0; i < encoding.size(); ++i)
///       std::cout << encoding.ids[i] << " from byte " << encoding.offsets[i].begin << "\n";

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tokenizer/text/utf8.h"
#include "tokenizer/token_id.h"

namespace zoo {

/// The ids of a text or a pair of texts, and the source of each. All vectors have the same length; offsets
/// and words are empty if they were not requested or are unknown.
struct Encoding {
  TokenIds ids;
  std::vector<std::int32_t> type_ids;  // segment ids
  std::vector<std::int8_t> texts;      // 0: first text, 1: second text, -1: added special token
  std::vector<ByteRange> offsets;      // bytes of the original text; {0, 0} for an added special token
  std::vector<std::int32_t> words;     // index of the pre-token in its text; -1 for an added special token
  bool cut = false;                    // tokens are left out, by EncodeOptions::max_length

  std::size_t size() const { return ids.size(); }
};

/// The text that is truncated if the result is too long.
enum class Truncation {
  longest_first,  // the longer text of a pair, until both have the same length
  only_first,
  only_second,
};

struct EncodeOptions {
  /// Adds special tokens around the texts, such as [CLS] and [SEP]; those inside a text are always found.
  bool add_special_tokens = true;
  /// Maximum number of tokens, added special tokens included.
  std::optional<std::size_t> max_length;
  Truncation truncation = Truncation::longest_first;
  /// Truncation removes tokens at the beginning of a text instead of its end.
  bool truncates_left = false;
  /// Encoding is faster without offsets.
  bool with_offsets = true;
};

/// The special tokens around the texts: a post-processor of tokenizer.json.
struct EncodingTemplate {
  struct Piece {
    enum class Kind { first_text, second_text, special } kind;
    std::int32_t type_id = 0;
    TokenIds ids;  // ids of a special piece
  };
  std::vector<Piece> single, pair;
};

/// A template in words: "A" and "B" are the texts, others the names of special tokens; ":1" after a word is
/// its type id, else 0. Names without ids are left out.
EncodingTemplate template_of(const std::string& single, const std::string& pair,
                             const std::map<std::string, TokenIds>& special);

/// Only the texts: type id 0 for the first, 1 for the second.
const EncodingTemplate& plain_template();

/// [CLS] first [SEP], [CLS] first [SEP] second [SEP]: type id 1 from the second text on.
EncodingTemplate bert_template(TokenId cls, TokenId sep);

/// `<s> first </s>`, `<s> first </s></s> second </s>`: RoBERTa has no segments.
EncodingTemplate roberta_template(TokenId cls, TokenId sep);

/// Combines texts and special tokens and truncates to options.max_length. `second` may be null. Throws Error
/// if max_length has no room for the special tokens.
Encoding assemble(std::span<const EncodingTemplate::Piece> pieces, Encoding first, Encoding* second,
                  const EncodeOptions& options);

/// Combines `first` with each part of `second` that still fits; neighbouring parts share `stride` tokens.
/// With truncates_left, the last part comes first. Throws Error if not more than `stride` tokens of it fit.
std::vector<Encoding> assemble_windows(std::span<const EncodingTemplate::Piece> pieces, const Encoding& first,
                                       const Encoding& second, std::size_t stride,
                                       const EncodeOptions& options);

}  // namespace zoo
