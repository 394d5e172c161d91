#include "data/examples/file_columns.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <nlohmann/json.hpp>

#include "data/base/field_error.h"
#include "data/base/json.h"
#include "data/base/near_match.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

constexpr auto kUsualNames = std::to_array<std::string_view>(
    {"answer",    "category", "class",   "content", "context",     "document", "hypothesis",
     "id",        "idx",      "index",   "input",   "intent",      "label",    "labels",
     "ner",       "output",   "pair",    "passage", "premise",     "question", "query",
     "reference", "response", "review",  "score",   "sent",        "sentence", "sentiment",
     "source",    "src",      "summary", "tag",     "tags",        "target",   "text",
     "tgt",       "title",    "token",   "topic",   "translation", "tweet",    "word"});

constexpr auto kLabelNames = std::to_array<std::string_view>(
    {"category", "class", "intent", "label", "labels", "rating", "score", "sentiment", "stars", "topic"});

template <class Json> Json object_in(Json parsed, const Line& line) {
  if (parsed.is_object()) return parsed;
  if (const auto at = invalid_utf8_at(line.text)) throw Error(line, ": invalid UTF-8 at its byte ", *at);
  throw Error(line, ": expected a JSON object");
}

// A name of letters, digits and '_' with one of `words` as a part: "sentence1", "airline_sentiment".
bool has_part(std::string_view text, std::span<const std::string_view> words) {
  std::string parts;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c != '_' && (byte > 127 || std::isalnum(byte) == 0)) return false;
    parts += std::isalpha(byte) != 0 ? static_cast<char>(std::tolower(byte)) : ' ';
  }
  const auto is_wanted = [&](std::string_view part) { return std::ranges::count(words, part) > 0; };
  return std::ranges::any_of(split(parts, ' '), is_wanted);
}

}  // namespace

FileColumns FileColumns::read(const std::string& flag) {
  FileColumns columns;
  if (flag.empty()) return columns;
  for (const std::string_view pair : split(flag, ',')) {
    const std::size_t equals = pair.find('=');
    const bool good = equals != pair.npos && equals > 0 && equals + 1 < pair.size();
    if (!good || !columns.own.emplace(pair.substr(equals + 1), pair.substr(0, equals)).second)
      throw UnfitField(Field{"columns"},
                       ": expected OURS=THEIRS, each once, with commas between them, as in "
                       "text=sentence1,label=class; got '",
                       flag, "'");
  }
  return columns;
}

std::string FileColumns::ours(std::string_view theirs) const {
  const auto found = own.find(std::string(theirs));
  return found == own.end() ? std::string(theirs) : found->second;
}

void FileColumns::check(std::span<const std::string> found, std::span<const std::string> known,
                        const Line& line) {
  const auto has = [](std::span<const std::string> names, const std::string& name) {
    return std::ranges::count(names, name) > 0;
  };
  for (const auto& [theirs, name] : own) {
    if (!has(known, name))
      throw UnfitField(Field{"columns"}, ": '", name, "' is no column of this task; expected ",
                       joined(known));
  }
  std::vector<std::string> absent;
  for (const std::string& name : known)
    if (!has(found, name) && !unread.contains(name)) absent.push_back(name);
  for (const std::string& name : found) {
    if (has(known, name)) continue;
    const std::string near = nearest(name, absent);
    if (!near.empty() && !renames)
      throw Error(line, ": unknown name '", name, "'; did you mean '", near, "'?");
    if (!near.empty())
      throw FieldError(line, ": unknown name '", name, "'; did you mean '", near,
                       "'? Otherwise rename it or say ", Field{"columns"}, " ", near, "=NAME");
    ignored.insert(name);
  }
}

template <class Json>
Json FileColumns::renamed(const Json& theirs, const Line& line, std::span<const std::string> known) {
  Json object = Json::object();
  std::vector<std::string> found;
  for (const auto& [key, value] : theirs.items()) {
    found.push_back(ours(key));
    if (object.contains(found.back()))
      throw FieldError(line, ": two keys are '", found.back(), "' by ", Field{"columns"});
    object[found.back()] = value;
  }
  check(found, known, line);
  return object;
}

nlohmann::json FileColumns::read_object(const Line& line, std::span<const std::string> known) {
  return renamed(object_in(parse_json(line.text), line), line, known);
}

nlohmann::ordered_json FileColumns::read_ordered_object(const Line& line,
                                                        std::span<const std::string> known) {
  return renamed(object_in(parse_ordered_json(line.text), line), line, known);
}

bool looks_like_names(std::span<const std::string_view> parts) {
  const auto usual =
      std::ranges::count_if(parts, [](std::string_view part) { return has_part(part, kUsualNames); });
  return usual >= 2 && 2 * usual >= static_cast<std::ptrdiff_t>(parts.size());
}

bool names_a_label(std::string_view name) { return has_part(name, kLabelNames); }

}  // namespace zoo
