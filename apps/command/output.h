#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace zoo {

/// "124,439,808".
std::string with_separators(std::int64_t value);

/// "124.4 M": three to four digits and k, M, B or T; below a thousand the number itself.
std::string human_count(std::int64_t value);

/// "497.8 MB": decimal units, as a disk's.
std::string human_bytes(std::int64_t bytes);

/// Lines of cells under headings, each column as wide as its widest cell on a terminal.
class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string heading;
    Align align = Align::left;
  };

  explicit Table(std::vector<Column> columns);

  /// One cell a column; missing ones are empty.
  void row(std::vector<std::string> cells);

  /// With headings "", the rows only. Lines longer than `width` columns are cut by shortening the widest text
  /// column; 0 means no limit.
  void print(std::ostream& out, int width = 0) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// A column of numbers: `{{"tensor"}, number("bytes")}`.
Table::Column number(std::string heading);

}  // namespace zoo
