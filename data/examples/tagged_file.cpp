#include "data/examples/tagged_file.h"

#include <nlohmann/json.hpp>

#include "data/base/ending.h"
#include "data/base/field_error.h"
#include "data/base/lines.h"
#include "tokenizer/text/utf8.h"

namespace zoo {

std::vector<std::string> texts_under(const nlohmann::json& object, const char* key, const Line& line) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array() || found->empty())
    throw Error(line, ": '", key, "' must be a list of texts, and not an empty one");
  std::vector<std::string> texts;
  for (const auto& item : *found) {
    const bool is_number = item.is_number_integer();
    if (!is_number && (!item.is_string() || item.get_ref<const std::string&>().empty()))
      throw Error(line, ": '", key, "' holds what is not a text: ", item.dump());
    texts.push_back(is_number ? item.dump() : item.get<std::string>());
  }
  return texts;
}

namespace {

TaggedSentence read_sentence(const Line& line, FileColumns& names) {
  static const std::vector<std::string> known{"tokens", "labels"};
  const nlohmann::json object = names.read_object(line, known);
  TaggedSentence sentence{texts_under(object, "tokens", line), texts_under(object, "labels", line), {}};
  if (sentence.words.size() != sentence.tags.size())
    throw Error(line, ": ", sentence.words.size(), " tokens have ", sentence.tags.size(), " labels");
  sentence.lines.assign(sentence.words.size(), line.number);
  return sentence;
}

void read_word(const Line& line, TaggedSentence& sentence) {
  const std::vector<std::string_view> parts = split(line.text, '\t');
  if (parts.size() != 2 || parts[0].empty() || parts[1].empty())
    throw Error(line, ": expected a word, a tab and its label, found ", parts.size(),
                parts.size() == 1 ? " column" : " columns");
  sentence.words.emplace_back(parts[0]);
  sentence.tags.emplace_back(parts[1]);
  sentence.lines.push_back(line.number);
}

}  // namespace

std::vector<TaggedSentence> parse_tagged(std::string_view text, const std::string& name) {
  FileColumns names;
  return parse_tagged(text, name, names);
}

std::vector<TaggedSentence> parse_tagged(std::string_view text, const std::string& name, FileColumns& names) {
  require_utf8(text, name);
  std::vector<TaggedSentence> sentences;
  const bool objects = ending_of(name) == ".jsonl";
  if (!objects && !names.own.empty())
    throw FieldError(Field{"columns"}, ": ", name, " has no names: each line is a word and its label");
  bool inside = false;
  for (const Line& line : lines_of(text, name)) {
    if (!objects && line.number == 1 && looks_like_names(split(line.text, '\t')))
      throw Error(
          line, ": '", line.text,
          "' looks like the names of columns; expected a word, a tab and its label. Leave it out, or put "
          "an empty line above it if it is an example");
    if (objects) {
      sentences.push_back(read_sentence(line, names));
      continue;
    }
    if (!line.text.empty() && !inside) sentences.emplace_back();
    inside = !line.text.empty();
    if (inside) read_word(line, sentences.back());
  }
  if (sentences.empty()) throw Error(name, ": holds no sentence");
  return sentences;
}

}  // namespace zoo
