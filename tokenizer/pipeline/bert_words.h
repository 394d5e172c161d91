#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/pipeline/normalizer.h"
#include "tokenizer/text/utf8.h"

namespace zoo {

/// BERT's normalizer and pre-tokenizer in one pass, without alignment. Idea: nearly every character is
/// rewritten the same way in every context, so a table holds the result of each and the word boundaries.
class BertWords {
 public:
  explicit BertWords(const BertNormalizerOptions& options);

  /// Calls emit(word) for the normalized words in order; a word is valid during the call. Returns false if
  /// the text has marks that normalization may reorder; discard the words emitted before.
  template <class Emit> bool split(std::string_view text, Emit emit) const;

 private:
  // The results of 256 characters; kEndOfWord marks where a word ends.
  struct Page {
    std::array<std::uint32_t, 257> begins;
    std::string texts;
    bool holds_moving_marks = false;
    std::array<bool, 256> is_moving_mark{};
  };
  static constexpr char kEndOfWord = '\n';
  static constexpr std::size_t kPageSize = 256;

  std::string rewritten(char32_t c, bool& is_moving_mark) const;
  const Page& page_of(char32_t c) const;
  const Page& make_page(std::size_t number) const;

  BertNormalizerOptions options_;
  std::array<std::string, 128> ascii_;
  std::array<char, 128> ascii_byte_{};  // the single byte of the result; 0: see ascii_
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Page>> made_;
  mutable std::array<std::atomic<const Page*>, 0x110000 / kPageSize> pages_{};
};

template <class Emit> bool BertWords::split(std::string_view text, Emit emit) const {
  static thread_local std::string word;
  word.clear();
  const auto put = [&](std::string_view part) {
    for (const char c : part) {
      if (c != kEndOfWord) {
        word += c;
      } else if (!word.empty()) {
        emit(std::string_view(word));
        word.clear();
      }
    }
  };
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x80) {
      ++at;
      if (ascii_byte_[byte] != 0) {
        word += ascii_byte_[byte];
      } else {
        put(ascii_[byte]);
      }
      continue;
    }
    const char32_t c = next_code_point(text, at);
    const Page& page = page_of(c);
    const std::size_t place = c % kPageSize;
    if (page.holds_moving_marks && page.is_moving_mark[place]) return false;
    put(std::string_view(page.texts).substr(page.begins[place], page.begins[place + 1] - page.begins[place]));
  }
  put({&kEndOfWord, 1});
  return true;
}

}  // namespace zoo
