#include "data/examples/sentence_file.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "data/base/ending.h"
#include "data/base/error.h"
#include "data/base/lines.h"
#include "data/examples/record_file.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

using Names = std::vector<std::string>;

const Names kScored{"sentence1", "sentence2", "score"};

bool numbers_a_negative(const std::string& name) {
  constexpr std::string_view kBegin = "negative_";
  return name.starts_with(kBegin) && name.size() > kBegin.size() &&
         std::all_of(name.begin() + kBegin.size(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool has(const Names& names, const std::string& name) { return std::ranges::count(names, name) > 0; }

// The finite number that is the whole text.
std::optional<double> score_in(std::string_view text) {
  const auto number = number_in<double>(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

// What a file has, by the names in its first line.
struct Shape {
  bool scored = false;
  Names negatives{"negative"};

  std::string score() const { return scored ? kScored.back() : ""; }
  Columns columns() const { return scored ? Columns{kScored} : Columns{{"anchor", "positive"}, negatives}; }
};

// The names of a query and its documents, as retrieval calls a pair, are those of the pair.
Shape shape_of(Names found, FileColumns& names) {
  for (std::string& name : found) name = names.ours(name);
  if (has(found, "query") && !has(found, "anchor")) {
    names.own["query"] = "anchor";
    *std::ranges::find(found, "query") = "anchor";
  }
  Shape shape;
  shape.scored = !has(found, "anchor") && (has(found, kScored[0]) || has(found, kScored[1]));
  for (const std::string& name : found)
    if (numbers_a_negative(name)) shape.negatives.push_back(name);
  return shape;
}

// `score`: what the last field is called, a number; empty: it is a text.
SentenceExample example_of(Record record, const std::string& score, const std::string& name) {
  SentenceExample example{.line = record.line, .texts = std::move(record.fields)};
  if (!score.empty()) {
    example.score = score_in(example.texts.back());
    if (!example.score)
      throw Error(name, ", line ", example.line, ": '", score, "' must be a number, found '",
                  example.texts.back(), "'");
    example.texts.pop_back();
  }
  std::erase(example.texts, "");
  return example;
}

std::vector<SentenceExample> read_table(std::string_view text, const std::string& name, FileColumns& names) {
  const Names parts = first_names(text, name);
  Shape shape = shape_of(parts, names);
  const bool headed = std::ranges::any_of(parts, [&](const std::string& part) {
    return names.ours(part) == "anchor" || names.ours(part) == kScored[0];
  });
  if (!headed) {
    shape.scored = parts.size() == 3 && score_in(parts[2]);
    for (std::size_t i = 3; i < parts.size(); ++i)
      shape.negatives.push_back("negative_" + std::to_string(i - 2));
  }
  std::vector<SentenceExample> examples;
  for (Record& record : parse_records(text, name, shape.columns(), names))
    examples.push_back(example_of(std::move(record), shape.score(), name));
  return examples;
}

// Adds a text, or each of a list.
void add_negatives(const nlohmann::json& value, const Line& line, std::vector<std::string>& texts) {
  if (value.is_null()) return;
  for (const nlohmann::json& each : value.is_array() ? value : nlohmann::json::array({value})) {
    if (!each.is_string() || each.get<std::string>().empty())
      throw Error(line, ": negatives must be texts, found ", each.dump());
    texts.push_back(each.get<std::string>());
  }
}

std::vector<SentenceExample> read_objects(std::string_view text, const std::string& name,
                                          FileColumns& names) {
  require_utf8(text, name);
  std::vector<SentenceExample> examples;
  Shape shape = shape_of(first_names(text, name), names);
  shape.negatives.push_back("negatives");
  const Columns columns = shape.columns();
  for (const Line& line : lines_of(text, name)) {
    const nlohmann::json object = names.read_object(line, columns.names());
    Record record{line.number, {}};
    for (const std::string& key : columns.required) {
      record.fields.push_back((names_a_label(key) ? label_under : text_under)(object, key, line));
      if (record.fields.back().empty()) throw Error(line, ": '", key, "' is missing or empty");
    }
    examples.push_back(example_of(std::move(record), shape.score(), name));
    for (const std::string& key : columns.optional)
      add_negatives(object.value(key, nlohmann::json()), line, examples.back().texts);
  }
  if (examples.empty())
    throw Error(name, ": holds no example; expected objects with anchor and positive, or with ",
                joined(kScored));
  return examples;
}

}  // namespace

std::vector<SentenceExample> parse_sentences(std::string_view text, const std::string& name,
                                             FileColumns& names) {
  Names found = first_names(text, name);
  for (std::string& column : found) column = names.ours(column);
  std::vector<SentenceExample> examples;
  if (!has(found, "text") || !has(found, "label")) {
    const auto own = names.own;  // in this file alone, a query may be the anchor
    examples = ending_of(name) == ".jsonl" ? read_objects(text, name, names) : read_table(text, name, names);
    names.own = own;
    return examples;
  }
  for (Record& record : parse_records(text, name, {{"text", "label"}}, names))
    examples.push_back({.line = record.line, .texts = {record.fields[0]}, .label = record.fields[1]});
  return examples;
}

std::vector<SentenceExample> parse_rankings(std::string_view text, const std::string& name,
                                            FileColumns& names) {
  const Names columns = first_names(text, name);
  const auto is_positive = [&](const std::string& column) { return names.ours(column) == "positive"; };
  if (std::ranges::any_of(columns, is_positive)) return parse_sentences(text, name, names);
  std::vector<SentenceExample> examples;
  for (Record& record : parse_records(text, name, {{"query", "document", "label"}}, names))
    examples.push_back(example_of(std::move(record), "label", name));
  return examples;
}

}  // namespace zoo
