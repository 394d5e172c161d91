#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "apps/command/terminal.h"

namespace zoo {

/// printf into a string of at most 255 bytes.
[[gnu::format(printf, 1, 2)]] std::string format_text(const char* format, ...);

/// Formats as "124,439,808".
std::string with_separators(std::int64_t value);

/// Formats as "124.4 M": three to four digits and k, M, B or T; plain below a thousand.
std::string human_count(std::int64_t value);

/// Formats as "497.8 MB": decimal units, as for disks.
std::string human_bytes(std::int64_t bytes);

/// Formats seconds as "0:32" or "1:02:09".
std::string clock_time(std::int64_t seconds);

/// A text table with headings; each column is as wide as its widest cell on a terminal.
class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string heading;
    Align align = Align::left;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// Adds a row; missing cells are empty, control characters are shown as visible_text().
  void row(std::vector<std::string> cells);

  /// Prints only the rows if all headings are "". Within `width` columns (0: no limit) headings and texts are
  /// wrapped; if even that is too wide, each row is a paragraph of headings and cells.
  void print(std::ostream& out, int width = standard_output_width()) const;

 private:
  std::vector<int> widths(int width) const;
  void print_line(std::ostream& out, const std::vector<std::string>& cells, const std::vector<int>& widths,
                  bool at_bottom = false) const;
  void print_paragraphs(std::ostream& out, int width) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// A column of numbers: `{{"tensor"}, number("bytes")}`.
Table::Column number(std::string heading);

}  // namespace zoo
