#include "tokenizer/pipeline/pre_tokenizer.h"

#include <algorithm>

#include "tokenizer/pipeline/pipeline.h"
#include "tokenizer/text/byte_level.h"
#include "tokenizer/text/unicode.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

// A part of a word: a match of a pattern, or the text between two matches.
struct Part {
  std::uint32_t begin, end;
  bool is_match;
};
using Parts = std::vector<Part>;

std::uint32_t index(std::size_t value) { return static_cast<std::uint32_t>(value); }

// Joins matches with the part before them in the list or, if contiguous, parts of a kind.
void merge_parts(Parts& parts, bool contiguous) {
  Parts merged;
  bool previous = false;
  for (const Part& part : parts) {
    const bool joins = contiguous ? part.is_match == previous : part.is_match && !previous;
    if (joins && !merged.empty()) {
      Part& last = merged.back();
      last = {std::min(last.begin, part.begin), std::max(last.end, part.end), false};
    } else {
      merged.push_back({part.begin, part.end, false});
    }
    previous = part.is_match;
  }
  parts = std::move(merged);
}

void apply(SplitBehavior behavior, Parts& parts) {
  switch (behavior) {
    case SplitBehavior::removed: std::erase_if(parts, [](const Part& part) { return part.is_match; }); return;
    case SplitBehavior::isolated: return;
    case SplitBehavior::contiguous: return merge_parts(parts, true);
    case SplitBehavior::merged_with_previous: return merge_parts(parts, false);
    case SplitBehavior::merged_with_next:
      std::ranges::reverse(parts);
      merge_parts(parts, false);
      std::ranges::reverse(parts);
  }
}

// Splits every word: find(text of the word, parts) fills in the parts.
template <class Find> void split(SplitText& text, Find find) {
  std::vector<Word> words;
  words.reserve(text.words.size() * 2);
  Parts parts;
  for (const Word& word : text.words) {
    if (word.is_token()) {
      words.push_back(word);
      continue;
    }
    parts.clear();
    find(text.view(word), parts);
    for (const Part& part : parts) {
      if (part.begin < part.end) words.push_back({word.begin + part.begin, word.begin + part.end});
    }
  }
  text.words = std::move(words);
}

// Splits at the matches that find(text of the word, matches) adds.
template <class Find> PreTokenizer split_at_matches(Find find, SplitBehavior behavior, bool invert) {
  return [find = std::move(find), behavior, invert](SplitText& text) {
    std::vector<ByteRange> matches;
    split(text, [&](std::string_view word, Parts& parts) {
      matches.clear();
      find(word, matches);
      std::uint32_t done = 0;
      for (const ByteRange match : matches) {
        if (match.begin > done) parts.push_back({done, match.begin, invert});
        parts.push_back({match.begin, match.end, !invert});
        done = match.end;
      }
      if (done < word.size()) parts.push_back({done, index(word.size()), invert});
      apply(behavior, parts);
    });
  };
}

// Rewrites the words: change(word, its text, rewritten) appends the new text to `rewritten`.
template <class Change> void rewrite(SplitText& text, Change change) {
  AlignedText rewritten;
  rewritten.text.reserve(text.text.text.size() + 3 * text.words.size());
  for (Word& word : text.words) {
    const auto begin = index(rewritten.text.size());
    change(word, text.view(word), rewritten);
    word.begin = begin;
    word.end = index(rewritten.text.size());
  }
  text.text = std::move(rewritten);
}

// Appends bytes that come from the byte `at` of `from`.
void put(std::string_view bytes, const AlignedText& from, std::size_t at, AlignedText& to) {
  to.text += bytes;
  if (from.tracks()) to.source.resize(to.text.size(), from.source[at]);
}

}  // namespace

PreTokenizer split_at(bool (*is_kind)(char32_t), SplitBehavior behavior) {
  const auto find = [is_kind](std::string_view word, std::vector<ByteRange>& matches) {
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t begin = at;
      if (is_kind(next_code_point(word, at))) matches.push_back({index(begin), index(at)});
    }
  };
  return split_at_matches(find, behavior, false);
}

PreTokenizer bert_pre_tokenizer() {
  return in_sequence<SplitText>(
      {split_at(is_white_space, SplitBehavior::removed), split_at(is_punctuation, SplitBehavior::isolated)});
}

PreTokenizer whitespace_pre_tokenizer() {
  return in_sequence<SplitText>({split_at(is_white_space, SplitBehavior::removed),
                                 split_at(is_word_character, SplitBehavior::contiguous)});
}

PreTokenizer split_pre_tokenizer(TextPattern pattern, SplitBehavior behavior, bool invert) {
  const auto find = [pattern = std::move(pattern)](std::string_view word, std::vector<ByteRange>& matches) {
    pattern.find(word, matches);
  };
  return split_at_matches(find, behavior, invert);
}

PreTokenizer split_pre_tokenizer(SplitPattern pattern) {
  return [pattern](SplitText& text) {
    split(text, [pattern](std::string_view word, Parts& parts) {
      split_words(pattern, word, [&](std::string_view part) {
        const auto begin = index(static_cast<std::size_t>(part.data() - word.data()));
        parts.push_back({begin, begin + index(part.size()), true});
      });
    });
  };
}

PreTokenizer metaspace_pre_tokenizer(const MetaspaceOptions& options) {
  return [options, mark = utf8_of(options.replacement)](SplitText& text) {
    const AlignedText& old = text.text;
    rewrite(text, [&](const Word& word, std::string_view content, AlignedText& to) {
      if (word.is_token()) return to.append(old, word.begin, content.size());
      const bool is_first = old.source_of({word.begin, word.end}).begin == 0;
      const bool prepends = options.prepend == MetaspaceOptions::Prepend::always ||
                            (options.prepend == MetaspaceOptions::Prepend::first && is_first);
      if (prepends && content[0] != ' ' && !content.starts_with(mark)) put(mark, old, word.begin, to);
      for (std::size_t begin = 0; begin < content.size();) {
        const std::size_t space = std::min(content.find(' ', begin), content.size());
        to.append(old, word.begin + begin, space - begin);
        if (space < content.size()) put(mark, old, word.begin + space, to);
        begin = space + 1;
      }
    });
    if (!options.split) return;
    split(text, [&mark](std::string_view word, Parts& parts) {
      for (std::size_t begin = 0; begin < word.size();) {
        const std::size_t end = std::min(word.find(mark, begin + 1), word.size());
        parts.push_back({index(begin), index(end), false});
        begin = end;
      }
    });
  };
}

PreTokenizer byte_level_pre_tokenizer(const ByteLevelOptions& options) {
  return [options, words = split_pre_tokenizer(SplitPattern::gpt2)](SplitText& text) {
    const AlignedText& old = text.text;
    if (options.add_prefix_space) {
      rewrite(text, [&](const Word& word, std::string_view content, AlignedText& to) {
        if (!word.is_token() && content[0] != ' ') put(" ", old, word.begin, to);
        to.append(old, word.begin, content.size());
      });
    }
    if (options.use_regex) words(text);
    if (!options.maps_bytes) return;
    rewrite(text, [&](const Word& word, std::string_view content, AlignedText& to) {
      if (word.is_token()) return to.append(old, word.begin, content.size());
      for (std::size_t at = word.begin; at < word.end; ++at)
        put(utf8_of(byte_level_character(static_cast<unsigned char>(old.text[at]))), old, at, to);
    });
  };
}

}  // namespace zoo
