#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/text/utf8.h"

namespace zoo {

/// A text that is being rewritten and, for each of its bytes, the bytes of the original character it comes
/// from. Without tracking, source is empty.
struct AlignedText {
  std::string text;
  std::vector<ByteRange> source;
  std::uint32_t begin = 0;  // of the original

  AlignedText() = default;
  /// The original itself.
  AlignedText(std::string_view original, bool tracks);

  bool tracks() const { return !source.empty(); }
  /// The original's bytes for a range, for an empty one those at its position; if not tracked, the range.
  ByteRange source_of(ByteRange range) const;

  /// Appends `size` bytes of another text, from byte `from`, with their sources.
  void append(const AlignedText& other, std::size_t from, std::size_t size);
};

/// Rewrites a text character by character, with the alignment of `tokenizers`.
class TextRewriter {
 public:
  explicit TextRewriter(AlignedText& text);

  /// Drops the next `count` characters of the old text.
  void skip(std::size_t count);
  /// Copies bytes of the old text.
  void keep(std::size_t bytes);
  /// Writes `c` instead of the next old character and `removed` more.
  void replace(char32_t c, std::size_t removed = 0);
  /// Writes `c` in addition; it is aligned with the old character before it, else with the original's begin.
  void add(char32_t c);

  /// Replaces the old text by the new one. All members that write throw Error as TextWork::wrote() does.
  void finish();

 private:
  template <class Source> void write(char32_t c, Source source);

  AlignedText& text_;
  std::size_t most_;        // bytes of the new text
  std::size_t cursor_ = 0;  // in the old text
  AlignedText new_;
};

}  // namespace zoo
