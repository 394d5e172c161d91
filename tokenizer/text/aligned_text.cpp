#include "tokenizer/text/aligned_text.h"

#include <algorithm>
#include <cstdint>

#include "tokenizer/text/text_work.h"

namespace zoo {

AlignedText::AlignedText(std::string_view original, bool tracks) : text(original) {
  if (!tracks) return;
  source.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); at = source.size()) {
    const std::size_t end = character_end(text, at);
    source.resize(end, {static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(end)});
  }
}

ByteRange AlignedText::source_of(ByteRange range) const {
  if (!tracks()) return range;
  if (range.begin >= range.end) {
    const std::uint32_t at = range.begin == 0 ? source.front().begin : source[range.begin - 1].end;
    return {at, at};
  }
  return {source[range.begin].begin, source[range.end - 1].end};
}

void AlignedText::append(const AlignedText& other, std::size_t from, std::size_t size) {
  text.append(other.text, from, size);
  if (!other.tracks()) return;
  const auto first = other.source.begin() + static_cast<std::ptrdiff_t>(from);
  source.insert(source.end(), first, first + static_cast<std::ptrdiff_t>(size));
}

TextRewriter::TextRewriter(AlignedText& text) : text_(text) {
  const TextWork* work = TextWork::current();
  most_ = work == nullptr ? SIZE_MAX : work->most_bytes();
  new_.text.reserve(text.text.size() + 8);
  new_.begin = text.begin;
}

void TextRewriter::skip(std::size_t count) {
  for (; count > 0 && cursor_ < text_.text.size(); --count) cursor_ = character_end(text_.text, cursor_);
}

void TextRewriter::keep(std::size_t bytes) {
  if (bytes > most_ - std::min(most_, new_.text.size())) TextWork::current()->wrote(new_.text.size() + bytes);
  new_.append(text_, cursor_, bytes);
  cursor_ += bytes;
}

template <class Source> void TextRewriter::write(char32_t c, Source source) {
  append_utf8(new_.text, c);
  if (new_.text.size() > most_) TextWork::current()->wrote(new_.text.size());
  if (text_.tracks()) new_.source.resize(new_.text.size(), source());
}

void TextRewriter::replace(char32_t c, std::size_t removed) {
  write(c, [this] { return text_.source[std::min(cursor_, text_.source.size() - 1)]; });
  skip(1 + removed);
}

void TextRewriter::add(char32_t c) {
  write(c, [this] { return cursor_ == 0 ? ByteRange{text_.begin, text_.begin} : text_.source[cursor_ - 1]; });
}

void TextRewriter::finish() {
  if (TextWork* work = TextWork::current()) work->wrote(new_.text.size());
  text_ = std::move(new_);
}

}  // namespace zoo
