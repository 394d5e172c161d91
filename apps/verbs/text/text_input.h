#pragma once

#include <exception>
#include <fstream>
#include <istream>
#include <string>
#include <vector>

#include "apps/command/flags.h"
#include "data/examples/record_file.h"
#include "models/tasks/text_pass.h"

namespace zoo {

/// Sources of a verb's texts: --text TEXT (repeatable), --input FILE or standard input.
struct TextFlags {
  std::vector<std::string> texts;
  std::vector<std::string> pairs;  // second texts of --text: none, or as many
  std::string input = "-";
  std::string text_flag = "text", input_flag = "input";  // their names, for messages
  bool has_notes = true;                                 // about columns that are not read
};

void add_text_flags(Flags& flags, TextFlags& values);

/// flags.parse() after declaring --weights and the flags of add_compute(); then sets the number of threads.
bool parse_with_compute(Flags& flags, ComputeOptions& compute, const Arguments& arguments);

/// The text of a flag: TEXT itself, - for standard input, FILE:PATH for a file.
std::string given_text(const std::string& given);

/// Reads the texts in order. Each line is a text; .jsonl, .tsv and .csv files are those that the task is
/// trained on: `columns` has the text first, and perhaps "text_pair" and others, which are not read. JSON may
/// also have it under "text". "tokens" are words with labels (tagged_file.h), which make a text.
class TextInput {
 public:
  /// Throws Error naming a file that cannot be read, or the line of an invalid table. Empty lines are refused
  /// unless `takes_empty`, which is for a tokenizer that gives them tokens.
  TextInput(const TextFlags& flags, Columns columns, bool takes_empty = true);

  /// At most `most` texts; empty at the end. Throws Error naming file and line of invalid UTF-8 or JSON,
  /// after the texts before it.
  std::vector<std::string> next(std::size_t most);
  /// The second texts of those; "" where there is none.
  const std::vector<std::string>& pairs() const { return pairs_; }
  /// Their lines, counted from 1; 0 for texts of flags.
  const std::vector<std::int64_t>& lines() const { return lines_; }

 private:
  void read_table();
  Record read_line(const std::string& line);
  void note_ignored();

  Columns columns_;
  FileColumns names_{.renames = false};
  std::size_t noted_ = 0;
  std::vector<Record> records_;  // of --text or a table
  std::size_t used_ = 0;
  std::vector<std::string> pairs_;
  std::vector<std::int64_t> lines_;
  std::string name_;
  bool objects_ = false;
  std::ifstream file_;
  std::istream* stream_ = nullptr;
  std::size_t line_ = 0;
  bool takes_empty_, has_notes_;
  std::exception_ptr fault_;  // in the line after the texts that next() gave
};

/// Counts the texts of which a model reads a part, because they are longer than its limit.
class CutTexts {
 public:
  /// run_at_once(), which also counts; refers to this object.
  RunPass run();

  /// Says on standard error how many there were, if any.
  void note() const;

 private:
  std::int64_t cut_ = 0, all_ = 0;
  std::size_t limit_ = 0;
};

}  // namespace zoo
