#pragma once

/// @file
/// Use:
///
///     const std::vector<zoo::TaggedSentence> sentences =
///         zoo::parse_tagged("Ada\tPER\nlaughs\tO\n", "names.txt");
///     std::cout << sentences[0].words[0] << " " << sentences[0].tags[0] << "\n";

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "data/examples/file_columns.h"

namespace zoo {

/// A sentence with a label for each word.
struct TaggedSentence {
  std::vector<std::string> words, tags;  // of equal length, at least one
  std::vector<std::int64_t> lines;       // the line of each word
};

/// The texts or whole numbers in a list under a key. Throws Error naming file, line and key.
std::vector<std::string> texts_under(const nlohmann::json& object, const char* key, const Line& line);

/// Reads the sentences of a text. If `name` ends in .jsonl, a line is an object with two lists of texts or
/// whole numbers, "tokens" and "labels". Otherwise a line is a word, a tab and its label, and an empty line
/// ends a sentence (CoNLL-2003's layout with its first and last column). Throws Error naming file and line.
std::vector<TaggedSentence> parse_tagged(std::string_view text, const std::string& name, FileColumns& names);
std::vector<TaggedSentence> parse_tagged(std::string_view text, const std::string& name);

}  // namespace zoo
