#pragma once

/// @file
/// Use:
///
///     const zoo::TextFile file("input.txt");  // mapped, and checked to be UTF-8
///     const std::string_view text = file.text();

#include <filesystem>
#include <string>
#include <string_view>

#include "data/base/mapped_file.h"

namespace zoo {

/// Who looks whether a text is UTF-8: the file, which reads all of it, or what parses each line before its
/// use.
enum class Utf8Check { whole, by_reader };

/// A mapped UTF-8 file.
class TextFile {
 public:
  /// Throws Error naming the file, and the line of invalid UTF-8; also for an empty file.
  explicit TextFile(const std::filesystem::path& path, Utf8Check check = Utf8Check::whole);

  /// The text without its byte order mark.
  std::string_view text() const { return text_; }

 private:
  MappedFile file_;
  std::string_view text_;
};

/// A copy of a file's text. Throws as TextFile does.
std::string read_text(const std::filesystem::path& path);

}  // namespace zoo
