#pragma once

#include <filesystem>
#include <fstream>
#include <istream>
#include <string>
#include <vector>

#include "apps/command/flags.h"

namespace zoo {

/// Where a verb's texts come from: --text TEXT, as often as wished, or --input FILE, or standard input.
struct TextFlags {
  std::vector<std::string> texts;
  std::string input = "-";
};

void add_text_flags(Flags& flags, TextFlags& values);

/// The texts one after the other. A line is a text; a line of a file whose name ends in .jsonl is an object
/// with the text under "text".
class TextInput {
 public:
  /// Throws Error naming a file that cannot be read.
  explicit TextInput(const TextFlags& flags);

  /// At most `most` texts, none at the end. Throws Error naming file and line of what is not UTF-8 or not the
  /// object that it should be.
  std::vector<std::string> next(std::size_t most);

 private:
  std::string read_line(const std::string& line) const;

  std::vector<std::string> texts_;
  std::size_t used_ = 0;
  std::string name_;
  bool objects_ = false;
  std::ifstream file_;
  std::istream* stream_ = nullptr;
  std::size_t line_ = 0;
};

}  // namespace zoo
