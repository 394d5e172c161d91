#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tokenizer/text/utf8.h"
#include "tokenizer/token_id.h"

namespace zoo {

/// What a model with a head needs of a text, or of two: for each token its id and where it comes from. All
/// the vectors are of one length; offsets and words are empty if they were not asked for, or are not known.
struct Encoding {
  std::vector<TokenId> ids;
  std::vector<std::int32_t> type_ids;  // what BERT calls the segment
  std::vector<std::int8_t> texts;      // 0: of the first text, 1: of the second, -1: an added special token
  std::vector<ByteRange> offsets;      // in its own text as it was given; {0, 0} for an added special token
  std::vector<std::int32_t> words;     // the pre-token of its own text, counted from 0; -1 for an added one

  std::size_t size() const { return ids.size(); }
};

/// How a text that is too long is cut; what goes is at the end.
enum class Truncation {
  longest_first,  // of a pair the longer text, until both are of one length
  only_first,
  only_second,
};

struct EncodeOptions {
  /// Those around the texts, as [CLS] and [SEP] are. Written in the text they are recognised in any case.
  bool add_special_tokens = true;
  /// Of the whole, the added special tokens included.
  std::optional<std::size_t> max_length;
  Truncation truncation = Truncation::longest_first;
  /// Without them it is faster.
  bool with_offsets = true;
};

/// What stands around the texts: a post-processor of tokenizer.json.
struct EncodingTemplate {
  struct Piece {
    enum class Kind { first_text, second_text, special } kind;
    std::int32_t type_id = 0;
    std::vector<TokenId> ids;  // of a special piece
  };
  std::vector<Piece> single, pair;
};

/// The texts alone: type id 0 for the first, 1 for the second.
const EncodingTemplate& plain_template();

/// [CLS] first [SEP], [CLS] first [SEP] second [SEP]: type id 1 from the second text on.
EncodingTemplate bert_template(TokenId cls, TokenId sep);

/// <s> first </s>, <s> first </s></s> second </s>: RoBERTa has no segments.
EncodingTemplate roberta_template(TokenId cls, TokenId sep);

/// Puts texts and special tokens together, cut to options.max_length. `second` may be null. Throws Error if
/// max_length has no room for the special tokens.
Encoding assemble(std::span<const EncodingTemplate::Piece> pieces, Encoding first, Encoding* second,
                  const EncodeOptions& options);

}  // namespace zoo
