#pragma once

/// @file
/// Use:
///
///     zoo::FileColumns names;
///     for (const zoo::SentenceExample& each : zoo::parse_sentences(text, "pairs.jsonl", names))
///       std::cout << each.texts[0] << " is answered by " << each.texts[1] << "\n";

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/examples/file_columns.h"

namespace zoo {

/// Texts that are compared, or one that is compared with other examples'.
struct SentenceExample {
  std::int64_t line = 0;             // counted from 1
  std::vector<std::string> texts;    // an anchor, its positive and any negatives; or two texts with a score
  std::optional<double> score = {};  // their similarity, or the second's relevance for the first
  std::optional<std::string> label = {};  // of a single text: texts with the same label are alike
};

/// Reads a .jsonl file of objects, or a table of tab-separated columns with or without a header line, in one
/// of the shapes of Sentence-Transformers' data sets:
///   anchor (or query), positive; perhaps negative, negative_1, …; in JSON lists under negative and negatives
///   sentence1, sentence2, score
///   text, label
/// A table without a header is the second if its first line has three columns, the third a number. All lines
/// have the same shape; the number of negatives may differ in JSON. `names` has the names in the file, and
/// receives the ignored ones. Throws Error naming file and line: a missing or empty text, a score that is no
/// finite number, another shape, and as parse_records() does.
std::vector<SentenceExample> parse_sentences(std::string_view text, const std::string& name,
                                             FileColumns& names);

/// The same of a query and documents, for cross-encoders, in one of the shapes
///   query, document, label: a finite number, which becomes the score
///   query, positive, and negatives as above
/// A table without a header has the former.
std::vector<SentenceExample> parse_rankings(std::string_view text, const std::string& name,
                                            FileColumns& names);

}  // namespace zoo
