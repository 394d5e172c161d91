#include "data/examples/ranking_file.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "data/base/lines.h"
#include "data/examples/record_file.h"
#include "data/examples/sentence_file.h"

namespace zoo {
namespace {

bool has_lists(std::string_view text, const std::string& name, const FileColumns& names) {
  const std::vector<Line> lines = lines_of(text);
  if (lines.empty()) return false;
  const auto is_positive = [&](std::string_view column) { return names.ours(column) == "positive"; };
  if (!name.ends_with(".jsonl")) return std::ranges::any_of(split_tabs(lines.front().text), is_positive);
  const nlohmann::json first = parse_object(lines.front(), name);
  bool found = false;
  for (const auto& [key, value] : first.items()) found = found || is_positive(key);
  return found;
}

}  // namespace

std::vector<RankingExample> parse_rankings(std::string_view text, const std::string& name,
                                           FileColumns& names) {
  std::vector<RankingExample> examples;
  if (has_lists(text, name, names)) {
    for (SentenceExample& example : parse_sentences(text, name, names)) {
      RankingExample& list = examples.emplace_back(
          RankingExample{.line = example.line, .query = std::move(example.texts.front()), .is_list = true});
      list.documents.assign(example.texts.begin() + 1, example.texts.end());
      list.labels.assign(list.documents.size(), 0);
      list.labels.front() = 1;
    }
    return examples;
  }
  for (Record& record : parse_records(text, name, {{"query", "document", "label"}}, names)) {
    const std::optional<double> label = number_in(record.fields[2]);
    if (!label)
      throw Error(name, ", line ", record.line, ": 'label' must be a number, found '", record.fields[2], "'");
    examples.push_back({record.line, std::move(record.fields[0]), {std::move(record.fields[1])}, {*label}});
  }
  return examples;
}

}  // namespace zoo
