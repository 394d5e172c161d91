#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zoo {

/// The texts of an example, with the line that they stand on.
struct Record {
  std::int64_t line = 0;            // counted from 1
  std::vector<std::string> fields;  // in the order of Columns: the required ones, then the optional ones
};

/// What the records of a file have. An optional field that a record lacks is "".
struct Columns {
  std::vector<std::string> required, optional = {};
};

/// The records of a text. Of a `name` that ends in .jsonl a line is an object with the columns as keys, whose
/// values are texts, numbers or truth values. Else a line is the columns with tabs between them: in the order
/// of a first line that names all required ones, or without such a line in the order of `columns`. Empty
/// lines at the end are none. Throws Error naming file and line: no record at all, a line of another width
/// than the first, a field that is missing or empty, what is not JSON.
std::vector<Record> parse_records(std::string_view text, const std::string& name, const Columns& columns);

}  // namespace zoo
