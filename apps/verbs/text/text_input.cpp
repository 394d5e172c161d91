#include "apps/verbs/text/text_input.h"

#include <algorithm>
#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/command/standard_streams.h"
#include "apps/compute/compute.h"
#include "data/base/ending.h"
#include "data/base/error.h"
#include "data/corpora/text_file.h"
#include "data/examples/tagged_file.h"
#include "tokenizer/text/utf8.h"

namespace zoo {

void add_text_flags(Flags& flags, TextFlags& values) {
  flags.add("text", values.texts, "a text");
  flags.add("input", values.input,
            "file with one text per line, or a table as the task is trained on: one object {\"text\": …} per "
            "line if its name ends in .jsonl, columns if it ends in .tsv or .csv; - reads standard input",
            {.placeholder = "FILE|-"});
}

bool parse_with_compute(Flags& flags, ComputeOptions& compute, const Arguments& arguments) {
  flags.add_weights(compute);
  flags.add_compute(compute);
  if (!flags.parse(arguments)) return false;
  apply_threads(compute);
  return true;
}

std::string given_text(const std::string& given) {
  constexpr std::string_view kFile = "FILE:";
  if (given.starts_with(kFile)) return read_text(given.substr(kFile.size()));
  return given == "-" ? read_standard_input() : given;
}

TextInput::TextInput(const TextFlags& flags, Columns columns, bool takes_empty)
    : columns_(std::move(columns)), takes_empty_(takes_empty), has_notes_(flags.has_notes) {
  if (!flags.texts.empty() && flags.input != "-")
    throw UsageError("--", flags.text_flag, " and --", flags.input_flag, ": give only one of them");
  if (!flags.pairs.empty() && flags.pairs.size() != flags.texts.size())
    throw UsageError("--text_pair: expected one for each --text, got ", flags.pairs.size(), " for ",
                     flags.texts.size());
  for (std::size_t i = 0; i < flags.texts.size(); ++i)
    records_.push_back({0, {flags.texts[i], flags.pairs.empty() ? "" : flags.pairs[i]}});
  if (!records_.empty()) return;
  name_ = flags.input;
  for (const std::string& name : columns_.optional)
    if (name != "text_pair") names_.unread.insert(name);
  if (has_columns(name_)) {
    read_table();
    return;
  }
  objects_ = ending_of(name_) == ".jsonl";
  if (flags.input == "-") {
    name_ = "standard input";
    stream_ = &standard_input();
    return;
  }
  file_.open(flags.input);
  if (!file_) throw Error("--", flags.input_flag, ": cannot read ", std::filesystem::path(flags.input));
  stream_ = &file_;
}

void TextInput::read_table() {
  const std::string text = read_text(name_);
  if (columns_.required[0] == "tokens") {
    const std::vector<std::string_view> first = split(every_line(text)[0].text, '\t');
    const bool has_texts = text.find('\t') == text.npos || std::ranges::count(first, "text") > 0;
    for (const TaggedSentence& sentence :
         has_texts ? std::vector<TaggedSentence>() : parse_tagged(text, name_))
      records_.push_back({sentence.lines[0], {joined(sentence.words, " "), ""}});
    if (!has_texts) return;
    columns_ = {{"text"}};
  }
  const std::vector<std::string> known = columns_.names();
  const auto pair = static_cast<std::size_t>(std::ranges::find(known, "text_pair") - known.begin());
  records_ = parse_records(text, name_, columns_, names_);
  for (Record& record : records_)
    record.fields = {record.fields[0], pair < known.size() ? record.fields[pair] : ""};
  note_ignored();
}

void TextInput::note_ignored() {
  if (!has_notes_ || names_.ignored.size() == noted_) return;
  noted_ = names_.ignored.size();
  const std::vector<std::string> ignored(names_.ignored.begin(), names_.ignored.end());
  std::cerr << "note: " << name_ << ": ignoring " << joined(ignored)
            << ", which this command does not read\n";
}

std::vector<std::string> TextInput::next(std::size_t most) {
  std::vector<std::string> found;
  pairs_.clear();
  lines_.clear();
  const auto add = [&](Record record) {
    found.push_back(std::move(record.fields[0]));
    pairs_.push_back(std::move(record.fields[1]));
    lines_.push_back(record.line);
  };
  for (; found.size() < most && used_ < records_.size(); ++used_) add(records_[used_]);
  if (stream_ == nullptr) return found;
  if (fault_) std::rethrow_exception(fault_);
  std::string line;
  while (found.size() < most && next_line(*stream_, line, line_ == 0)) {
    ++line_;
    if (objects_ && line.empty()) continue;
    try {
      add(read_line(line));
    } catch (const Error&) {
      if (found.empty()) throw;
      fault_ = std::current_exception();
      return found;
    }
  }
  if (stream_->bad()) throw Error("cannot read ", name_, " after line ", line_);
  if (line_ == 0 && has_notes_) std::cerr << "note: " << name_ << " holds no texts\n";
  return found;
}

Record TextInput::read_line(const std::string& line) {
  const Line numbered{static_cast<std::int64_t>(line_), line, name_};
  if (const auto fault = invalid_utf8_at(line)) throw Error(numbered, ": not UTF-8 at byte ", *fault);
  if (line.empty() && !takes_empty_) throw Error(numbered, ": the text is empty");
  if (!objects_) return {numbered.number, {line, ""}};
  const nlohmann::json object = parse_object(numbered);
  const std::vector<std::string> known = columns_.names();
  const std::string key = object.contains(known[0]) ? known[0] : "text";
  std::vector<std::string> found;
  for (const auto& [name, value] : object.items()) found.push_back(name == key ? known[0] : name);
  names_.check(found, known, numbered);
  note_ignored();
  if (!object.contains(key) || object[key].is_null())
    throw Error(numbered, ": expected an object with a '", known[0], "', got '", line, "'");
  if (key == "tokens") return {numbered.number, {joined(texts_under(object, "tokens", numbered), " "), ""}};
  return {numbered.number, {text_under(object, key, numbered), text_under(object, "text_pair", numbered)}};
}

RunPass CutTexts::run() {
  return [this](const TextPass& pass, const std::vector<Encoding>& texts) {
    for (const Encoding& text : texts) {
      ++all_;
      if (!text.cut) continue;
      ++cut_;
      limit_ = std::max(limit_, text.size());
    }
    return run_at_once(pass, texts);
  };
}

void CutTexts::note() const {
  if (cut_ == 0) return;
  std::cerr << "note: " << cut_ << (all_ == 1 ? " text is" : " of " + std::to_string(all_) + " texts are")
            << " longer than the " << limit_ << " tokens that are read, and cut\n";
}

}  // namespace zoo
