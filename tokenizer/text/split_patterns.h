#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "tokenizer/text/character_class.h"

namespace zoo {

/// How byte-level BPE splits a text into words; merges do not cross words. The published definitions are
/// regular expressions; these hand-written automata give the same words in one pass.
enum class SplitPattern {
  gpt2,    // Radford et al., 2019; also RoBERTa, BART and the ByteLevel of `tokenizers`
  cl100k,  // tiktoken's for GPT-4; Llama 3: numbers of at most three digits
  qwen2,   // cl100k with single digits
  o200k,   // tiktoken's for GPT-4o; Llama 4: cuts where upper case begins
};

/// "gpt2", "cl100k", "qwen2" or "o200k".
std::optional<SplitPattern> split_pattern_named(std::string_view name);

/// The pattern of a regular expression in one of its published spellings; nothing if it is another.
std::optional<SplitPattern> split_pattern_of(std::string_view expression);

/// The regular expression that tokenizer.json has for a pattern.
std::string_view expression_of(SplitPattern pattern);

/// The end of the word that begins at `start` < text.size(), a word boundary. The text must be UTF-8.
std::size_t gpt2_word_end(const CharacterClasses& classes, std::string_view text, std::size_t start);
std::size_t cl100k_word_end(const CharacterClasses& classes, std::string_view text, std::size_t start,
                            std::size_t max_digits = 3);
std::size_t o200k_word_end(const CharacterClasses& classes, std::string_view text, std::size_t start);

/// Calls emit(word) for the words of a text in order; their concatenation is the text.
template <class Emit> void split_words(SplitPattern pattern, std::string_view text, Emit emit) {
  const CharacterClasses& classes = CharacterClasses::get();
  const auto run = [&](auto word_end) {
    for (std::size_t start = 0; start < text.size();) {
      const std::size_t end = word_end(start);
      emit(text.substr(start, end - start));
      start = end;
    }
  };
  switch (pattern) {
    case SplitPattern::gpt2:
      return run([&](std::size_t start) { return gpt2_word_end(classes, text, start); });
    case SplitPattern::cl100k:
      return run([&](std::size_t start) { return cl100k_word_end(classes, text, start); });
    case SplitPattern::qwen2:
      return run([&](std::size_t start) { return cl100k_word_end(classes, text, start, 1); });
    case SplitPattern::o200k:
      return run([&](std::size_t start) { return o200k_word_end(classes, text, start); });
  }
}

}  // namespace zoo
