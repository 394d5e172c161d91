#pragma once

#include <ostream>
#include <string>
#include <string_view>

namespace zoo {

/// The text with each control character as its code, "\x1b": a name or a text of a stranger neither moves the
/// cursor nor changes colours or the title of a terminal. Of UTF-8; U+0080 to U+009F are control characters,
/// too.
std::string visible_text(std::string_view text);

/// visible_text() of a text of several lines: its tabs and line ends stay as they are.
std::string visible_lines(std::string_view text);

/// A text that a model has written: visible_lines() if standard output is a terminal; as it is for a pipe or
/// a file, whose reader wants the bytes.
std::string written_text(std::string_view text);

/// While in scope, std::cerr shows its texts as visible_lines(): messages name files and quote texts.
class VisibleErrors {
 public:
  VisibleErrors();
  ~VisibleErrors();
  VisibleErrors(const VisibleErrors&) = delete;
  VisibleErrors& operator=(const VisibleErrors&) = delete;

 private:
  std::streambuf* before_;
};

/// Standard error as it is, for the progress bar's own control characters.
std::ostream& raw_standard_error();

}  // namespace zoo
