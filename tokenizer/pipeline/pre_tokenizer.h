#pragma once

#include <functional>
#include <vector>

#include "tokenizer/text/aligned_text.h"
#include "tokenizer/text/split_patterns.h"
#include "tokenizer/text/text_pattern.h"
#include "tokenizer/token_id.h"

namespace zoo {

/// A word of a text, or an added token found in it.
struct Word {
  std::uint32_t begin = 0, end = 0;  // bytes of the text
  TokenId id = -1;                   // of an added token; else -1

  bool is_token() const { return id >= 0; }
};

/// A text split into words. Text between words is dropped; no word is empty.
struct SplitText {
  AlignedText text;
  std::vector<Word> words;

  std::string_view view(const Word& word) const {
    return std::string_view(text.text).substr(word.begin, word.end - word.begin);
  }
};

/// Splits or rewrites words: a pre-tokenizer of tokenizer.json. Added tokens stay unchanged.
using PreTokenizer = std::function<void(SplitText&)>;

/// Handling of the text that a pattern matches.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

struct MetaspaceOptions {
  enum class Prepend { always, never, first };  // first: only at the start of the text
  char32_t replacement = U'\u2581';
  Prepend prepend = Prepend::always;
  bool split = true;
};

struct ByteLevelOptions {
  bool add_prefix_space = true;
  bool use_regex = true;
  /// Maps bytes to GPT-2's alphabet; false if the model does.
  bool maps_bytes = true;
};

/// Each character of a kind is a separate match.
PreTokenizer split_at(bool (*is_kind)(char32_t), SplitBehavior behavior);
/// Splits at white space, which is dropped, and isolates punctuation (Devlin et al., 2019).
PreTokenizer bert_pre_tokenizer();
/// Finds `\w+|[^\w\s]+`.
PreTokenizer whitespace_pre_tokenizer();
PreTokenizer split_pre_tokenizer(TextPattern pattern, SplitBehavior behavior, bool invert);
PreTokenizer split_pre_tokenizer(SplitPattern pattern);
PreTokenizer metaspace_pre_tokenizer(const MetaspaceOptions& options);
PreTokenizer byte_level_pre_tokenizer(const ByteLevelOptions& options);

}  // namespace zoo
