#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zoo {

/// A sentence whose words bear labels.
struct TaggedSentence {
  std::vector<std::string> words, tags;  // of one length, at least one
  std::vector<std::int64_t> lines;       // where each word stands
};

/// The sentences of a text. Of a `name` that ends in .jsonl a line is an object with two lists of texts,
/// "tokens" and "labels". Else a line is a word, a tab and its label, and an empty line ends a sentence (the
/// layout of CoNLL-2003, with its first and last column). Throws Error naming file and line.
std::vector<TaggedSentence> parse_tagged(std::string_view text, const std::string& name);

}  // namespace zoo
