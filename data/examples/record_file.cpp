#include "data/examples/record_file.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "data/base/field_error.h"
#include "data/base/lines.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

void require_fields(const Record& record, const Columns& columns, const std::string& name, bool renames) {
  for (std::size_t i = 0; i < columns.required.size(); ++i) {
    if (!record.fields[i].empty()) continue;
    if (!renames)
      throw Error(name, ", line ", record.line, ": '", columns.required[i], "' is missing or empty");
    throw FieldError(name, ", line ", record.line, ": '", columns.required[i],
                     "' is missing or empty; if it has another name, say ", Field{"columns"}, " ",
                     columns.required[i], "=NAME");
  }
}

Record read_record(const Line& line, const std::string& name, const Columns& columns, FileColumns& names) {
  const std::vector<std::string> all = columns.names();
  const nlohmann::json object = names.read_object(line, name, all);
  Record record{line.number, {}};
  record.is_empty = object.value(all[0], nlohmann::json()) == "";
  for (const std::string& key : all) record.fields.push_back(text_under(object, key, line, name));
  return record;
}

// The index of each column in a line; -1: absent.
struct ColumnPositions {
  std::vector<std::int64_t> of_column;
  std::size_t width = 0;
  bool has_header = false;
};

// A value of --columns for these columns: the known ones, then the others in order.
std::string proposed(const std::vector<std::string_view>& parts, const std::vector<std::string>& names) {
  std::vector<std::string> free = names, pairs;
  std::erase_if(free, [&](const std::string& name) { return std::ranges::find(parts, name) != parts.end(); });
  auto next = free.begin();
  for (const std::string_view part : parts) {
    const bool known = std::ranges::find(names, part) != names.end();
    if (!known && next == free.end()) continue;
    pairs.push_back((known ? std::string(part) : *next++) + "=" + std::string(part));
  }
  return joined(pairs, ",");
}

ColumnPositions find_columns(const Line& first, const std::string& name, const Columns& columns,
                             FileColumns& in_file) {
  const std::vector<std::string_view> parts = split_tabs(first.text);
  const std::vector<std::string> names = columns.names();
  std::vector<std::string> ours;
  for (const std::string_view part : parts) ours.push_back(in_file.ours(part));
  ColumnPositions places{.width = parts.size()};
  for (const std::string& column : names) {
    const auto found = std::ranges::find(ours, column);
    places.of_column.push_back(found == ours.end() ? -1 : found - ours.begin());
  }
  const auto required = places.of_column.begin() + static_cast<std::ptrdiff_t>(columns.required.size());
  places.has_header = std::find(places.of_column.begin(), required, -1) == required;
  if (places.has_header) {
    in_file.check(ours, names, first, name);
    return places;
  }
  if (!in_file.own.empty())
    throw FieldError(name, ", line ", first.number, ": ", Field{"columns"}, " does not make its names '",
                     first.text, "' to ", joined(columns.required));
  if (looks_like_names(parts) && !in_file.renames)
    throw Error(name, ", line ", first.number, ": '", first.text, "' looks like the names of columns, but ",
                joined(columns.required), " are not all there");
  if (looks_like_names(parts))
    throw FieldError(name, ", line ", first.number, ": '", first.text,
                     "' looks like the names of columns, but ", joined(columns.required),
                     " are not all there; name them by ", Field{"columns"}, " ", proposed(parts, names),
                     ", or put a line '", joined(names, "<TAB>"), "' above it if it is an example");
  if (parts.size() < columns.required.size() || parts.size() > names.size())
    throw Error(name, ", line ", first.number, ": expected the columns ", joined(names),
                " with tabs between them, found ", parts.size(), parts.size() == 1 ? " column" : " columns");
  for (std::size_t i = 0; i < names.size(); ++i)
    places.of_column[i] = i < parts.size() ? static_cast<std::int64_t>(i) : -1;
  return places;
}

Record read_columns(const Line& line, const std::string& name, const ColumnPositions& places) {
  const std::vector<std::string_view> parts = split_tabs(line.text);
  if (parts.size() != places.width)
    throw Error(name, ", line ", line.number, ": expected ", places.width,
                " columns as in the first line, found ", parts.size());
  Record record{line.number, {}};
  for (const std::int64_t place : places.of_column)
    record.fields.emplace_back(place < 0 ? std::string_view() : parts[static_cast<std::size_t>(place)]);
  record.is_empty = record.fields[0].empty();
  return record;
}

}  // namespace

void refuse_csv(const std::string& name) {
  if (name.ends_with(".csv"))
    throw Error(name, ": tables with commas are not read; expected a .jsonl file, or a .tsv file, whose ",
                "fields hold no tabs and no line breaks");
}

std::vector<Record> parse_records(std::string_view text, const std::string& name, const Columns& columns) {
  FileColumns names;
  return parse_records(text, name, columns, names);
}

std::vector<Record> parse_records(std::string_view text, const std::string& name, const Columns& columns,
                                  FileColumns& names, std::int64_t first_line) {
  refuse_csv(name);
  require_utf8(text, name);
  std::vector<Line> lines = lines_of(text);
  for (Line& line : lines) line.number += first_line - 1;
  const bool objects = name.ends_with(".jsonl");
  std::vector<Record> records;
  std::int64_t skipped = 0;
  ColumnPositions places;
  if (!objects && !lines.empty()) places = find_columns(lines.front(), name, columns, names);
  for (std::size_t i = places.has_header ? 1 : 0; i < lines.size(); ++i) {
    records.push_back(objects ? read_record(lines[i], name, columns, names)
                              : read_columns(lines[i], name, places));
    if (columns.skips_empty && records.back().is_empty) {
      records.pop_back();
      ++skipped;
    } else {
      require_fields(records.back(), columns, name, names.renames);
    }
  }
  names.empty_rows += skipped;
  if (records.empty() && skipped == 0)
    throw Error(name, ": holds no example; expected lines of ", joined(columns.names()));
  return records;
}

}  // namespace zoo
