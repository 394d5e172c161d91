#pragma once

/// @file
/// Use:
///
///     const auto records = zoo::parse_records(text, "reviews.tsv", {.required = {"text", "label"}});
///     std::cout << records[0].line << ": " << records[0].fields[1] << "\n";

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/examples/file_columns.h"

namespace zoo {

/// The fields of an example and its line.
struct Record {
  std::int64_t line = 0;               // counted from 1
  std::vector<std::string> fields;     // in the order of Columns: required, then optional; "" is a list's
  std::vector<std::string> list = {};  // the texts under Columns::list
  bool is_empty = false;               // the first is an empty text, not missing
};

/// The columns of a file. A missing optional field is "".
struct Columns {
  std::vector<std::string> required, optional = {};
  bool skips_empty = false;  // leaves out rows whose first field is an empty text, and counts them
  std::string list = {};     // a required one that has any number of texts; none: each has one

  /// The required ones, then the others.
  std::vector<std::string> names() const {
    std::vector<std::string> all = required;
    all.insert(all.end(), optional.begin(), optional.end());
    return all;
  }
};

/// The keys of the first object of a .jsonl text, or the fields of a table's first row, which may be names;
/// none if the text is empty. Throws as parse_records().
std::vector<std::string> first_names(std::string_view text, const std::string& name);

/// Reads the records of a text. If `name` ends in .jsonl, a line is an object with the columns as keys and
/// texts as values, of labels also numbers or booleans. Otherwise a line is columns between tabs or, if
/// `name` ends in .csv, commas (RFC 4180: a field in quotes may hold line breaks), in the order of a header
/// line that names all required ones or, without a header, in the order of `columns`. `names` has the names
/// in the file, and receives the ignored ones. A list is one in JSON, in a table texts with commas between
/// them. Empty lines at the end are ignored; the first line is `first_line`. Throws Error naming file and
/// line: no record, a line of another width than the first, a missing or empty field, invalid JSON, a header
/// that lacks a required name, and as FileColumns::check().
std::vector<Record> parse_records(std::string_view text, const std::string& name, const Columns& columns,
                                  FileColumns& names, std::int64_t first_line = 1);
std::vector<Record> parse_records(std::string_view text, const std::string& name, const Columns& columns);

}  // namespace zoo
