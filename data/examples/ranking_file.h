#pragma once

/// @file
/// Use:
///
///     zoo::FileColumns names;
///     for (const zoo::RankingExample& each : zoo::parse_rankings(text, "answers.jsonl", names))
///       std::cout << each.query << ": " << each.documents.size() << " documents\n";

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/examples/file_columns.h"

namespace zoo {

/// A query and documents with their relevance.
struct RankingExample {
  std::int64_t line = 0;  // counted from 1
  std::string query;
  std::vector<std::string> documents;
  std::vector<double> labels;  // one per document
  bool is_list = false;        // the first document is the relevant one, label 1; the others have label 0
};

/// Reads a .jsonl file of objects or a table of tab-separated columns, in one of the shapes
///   query, document, label: a number for one document
///   query, positive, and negatives as parse_sentences() reads them
/// A table without a header has the former. Throws Error naming file and line: a missing text, a label that
/// is no finite number, and as parse_sentences() does.
std::vector<RankingExample> parse_rankings(std::string_view text, const std::string& name,
                                           FileColumns& names);

}  // namespace zoo
