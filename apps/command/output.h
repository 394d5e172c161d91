#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace zoo {

/// Formats as "124,439,808".
std::string with_separators(std::int64_t value);

/// Formats as "124.4 M": three to four digits and k, M, B or T; plain below a thousand.
std::string human_count(std::int64_t value);

/// Formats as "497.8 MB": decimal units, as for disks.
std::string human_bytes(std::int64_t bytes);

/// A text table with headings; each column is as wide as its widest cell on a terminal.
class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string heading;
    Align align = Align::left;
  };

  explicit Table(std::vector<Column> columns);

  /// Adds a row; missing cells are empty.
  void row(std::vector<std::string> cells);

  /// Prints only the rows if all headings are "". Lines longer than `width` columns are fitted by shortening
  /// the widest text column; 0 means no limit.
  void print(std::ostream& out, int width = 0) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// A column of numbers: `{{"tensor"}, number("bytes")}`.
Table::Column number(std::string heading);

}  // namespace zoo
