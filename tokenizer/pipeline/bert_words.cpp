#include "tokenizer/pipeline/bert_words.h"

#include "tokenizer/text/unicode.h"

namespace zoo {

BertWords::BertWords(const BertNormalizerOptions& options) : options_(options) {
  bool is_moving_mark = false;
  for (char32_t c = 0; c < ascii_.size(); ++c) {
    ascii_[c] = rewritten(c, is_moving_mark);
    const bool is_plain = ascii_[c].size() == 1 && ascii_[c][0] != kEndOfWord;
    if (is_plain) ascii_byte_[c] = ascii_[c][0];
  }
}

std::string BertWords::rewritten(char32_t c, bool& is_moving_mark) const {
  const bool is_ideograph = options_.handle_chinese_chars && is_cjk_ideograph(c);
  if (options_.clean_text) c = cleaned(c);
  if (c == kNoCharacter) return "";
  std::u32string characters{c};
  if (options_.strips_accents()) {
    characters = decomposed(c, Decomposition::canonical);
    std::erase_if(characters, is_nonspacing_mark);
    for (const char32_t part : characters) is_moving_mark = is_moving_mark || combining_class(part) != 0;
  }
  std::string text;
  for (const char32_t part : characters) {
    const std::u32string lower = options_.lowercase ? lowercase(part) : std::u32string{part};
    for (const char32_t final : lower) {
      const bool ends_word = is_ideograph || is_punctuation(final);
      if (is_white_space(final) || ends_word) text += kEndOfWord;
      if (!is_white_space(final)) append_utf8(text, final);
      if (ends_word) text += kEndOfWord;
    }
  }
  return text;
}

const BertWords::Page& BertWords::page_of(char32_t c) const {
  const Page* page = pages_[c / kPageSize].load(std::memory_order_acquire);
  return page != nullptr ? *page : make_page(c / kPageSize);
}

const BertWords::Page& BertWords::make_page(std::size_t number) const {
  const std::lock_guard lock(mutex_);
  if (const Page* page = pages_[number].load(std::memory_order_relaxed)) return *page;
  auto page = std::make_unique<Page>();
  for (std::size_t i = 0; i < kPageSize; ++i) {
    page->begins[i] = static_cast<std::uint32_t>(page->texts.size());
    const auto c = static_cast<char32_t>(number * kPageSize + i);
    if (c >= 0xD800 && c < 0xE000) continue;
    page->texts += rewritten(c, page->is_moving_mark[i]);
    page->holds_moving_marks = page->holds_moving_marks || page->is_moving_mark[i];
  }
  page->begins[kPageSize] = static_cast<std::uint32_t>(page->texts.size());
  made_.push_back(std::move(page));
  pages_[number].store(made_.back().get(), std::memory_order_release);
  return *made_.back();
}

}  // namespace zoo
