#include "apps/verbs/text/text_input.h"

#include <nlohmann/json.hpp>

#include "apps/command/lines.h"
#include "data/base/error.h"
#include "data/base/json_text.h"
#include "tokenizer/text/utf8.h"

namespace zoo {

void add_text_flags(Flags& flags, TextFlags& values) {
  flags.add("text", values.texts, "a text").placeholder("TEXT");
  flags
      .add("input", values.input,
           "file with one text per line, or with one object {\"text\": …} per line if its name ends in "
           ".jsonl; "
           "- reads standard input")
      .placeholder("FILE|-");
}

TextInput::TextInput(const TextFlags& flags) : texts_(flags.texts) {
  if (!texts_.empty()) return;
  objects_ = flags.input.ends_with(".jsonl");
  if (flags.input == "-") {
    name_ = "standard input";
    stream_ = &standard_input();
    return;
  }
  name_ = flags.input;
  file_.open(flags.input);
  if (!file_) throw Error("--input: cannot read ", std::filesystem::path(flags.input));
  stream_ = &file_;
}

std::vector<std::string> TextInput::next(std::size_t most) {
  std::vector<std::string> found;
  if (stream_ == nullptr) {
    for (; found.size() < most && used_ < texts_.size(); ++used_) {
      require_utf8(texts_[used_], "--text");
      found.push_back(texts_[used_]);
    }
    return found;
  }
  std::string line;
  while (found.size() < most && std::getline(*stream_, line)) {
    ++line_;
    found.push_back(read_line(line));
  }
  if (stream_->bad()) throw Error("cannot read ", name_, " after line ", line_);
  return found;
}

std::string TextInput::read_line(const std::string& line) const {
  if (const auto fault = invalid_utf8_at(line)) {
    throw Error(name_, ", line ", line_, ": not UTF-8 at byte ", *fault);
  }
  if (!objects_) return line;
  const nlohmann::json object = parse_json(line);
  const bool good = object.is_object() && object.contains("text") && object["text"].is_string();
  if (!good) throw Error(name_, ", line ", line_, ": expected an object with a \"text\", got '", line, "'");
  return object["text"].get<std::string>();
}

}  // namespace zoo
