#pragma once

#include <filesystem>
#include <fstream>
#include <istream>
#include <string>
#include <vector>

#include "apps/command/flags.h"

namespace zoo {

/// Sources of a verb's texts: --text TEXT (repeatable), --input FILE or standard input.
struct TextFlags {
  std::vector<std::string> texts;
  std::string input = "-";
};

void add_text_flags(Flags& flags, TextFlags& values);

/// Reads the texts in order. Each line is a text; in a .jsonl file it is an object with the text under
/// "text".
class TextInput {
 public:
  /// Throws Error naming a file that cannot be read.
  explicit TextInput(const TextFlags& flags);

  /// At most `most` texts; empty at the end. Throws Error naming file and line of invalid UTF-8 or JSON.
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
