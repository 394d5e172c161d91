#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/text/utf8.h"

namespace zoo {

/// A text that is changed on its way to the model, and of each of its bytes which bytes of the original text
/// it comes from: those of the whole character. Without tracking, source stays empty.
struct AlignedText {
  std::string text;
  std::vector<ByteRange> source;

  AlignedText() = default;
  /// Bytes [begin, begin + part.size()) of the original, as they are.
  AlignedText(std::string_view part, std::uint32_t begin, bool tracks);

  bool tracks() const { return !source.empty(); }
  /// The bytes of the original behind [begin, end) of the text: for an empty range none, at the place where
  /// it lies. Without tracking, the range itself.
  ByteRange source_of(ByteRange range) const;

  void append(const AlignedText& other);
};

/// Writes a text anew, one character at a time, so that each new character is aligned as `tokenizers` aligns
/// it.
class TextRewriter {
 public:
  explicit TextRewriter(AlignedText& text) : text_(text) { new_text_.reserve(text.text.size() + 8); }

  /// The next `count` characters of the old text go, without leaving anything.
  void skip(std::size_t count);
  /// Copies bytes of the old text as they are.
  void keep(std::size_t bytes);
  /// `c` in the place of the next old character, and of `removed` more behind it.
  void replace(char32_t c, std::size_t removed = 0);
  /// `c` besides: it belongs to the old character before.
  void add(char32_t c);
  /// change < 1: replace(c, -change); else add(c).
  void put(char32_t c, int change);

  /// Puts the new text in the place of the old.
  void finish();

 private:
  void write(char32_t c, std::size_t aligned_with);

  AlignedText& text_;
  std::size_t cursor_ = 0;  // in the old text
  std::string new_text_;
  std::vector<ByteRange> new_source_;
};

}  // namespace zoo
