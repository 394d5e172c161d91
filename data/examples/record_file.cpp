#include "data/examples/record_file.h"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include <nlohmann/json.hpp>

#include "data/base/ending.h"
#include "data/base/field_error.h"
#include "data/base/lines.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

void require_fields(const Record& record, const Columns& columns, const std::string& name, bool renames) {
  for (std::size_t i = 0; i < columns.required.size(); ++i) {
    if (!record.fields[i].empty() || columns.required[i] == columns.list) continue;
    if (!renames)
      throw Error(name, ", line ", record.line, ": '", columns.required[i], "' is missing or empty");
    throw FieldError(name, ", line ", record.line, ": '", columns.required[i],
                     "' is missing or empty; if it has another name, say ", Field{"columns"}, " ",
                     columns.required[i], "=NAME");
  }
}

Record read_record(const Line& line, const Columns& columns, FileColumns& names) {
  const std::vector<std::string> all = columns.names();
  const nlohmann::json object = names.read_object(line, all);
  Record record{line.number, {}};
  record.is_empty = object.value(all[0], nlohmann::json()) == "";
  for (const std::string& key : all) {
    const auto text = [&](const nlohmann::json& from) {
      return (names_a_label(key) ? label_under : text_under)(from, key, line);
    };
    if (key != columns.list) {
      record.fields.push_back(text(object));
      continue;
    }
    if (!object.contains(key)) throw Error(line, ": '", key, "' is missing; an example without any has []");
    const nlohmann::json& value = object[key];
    for (const nlohmann::json& each : value.is_array() ? value : nlohmann::json::array({value}))
      record.list.push_back(text({{key, each}}));
    record.fields.emplace_back();
  }
  return record;
}

// The texts with commas between them in a list's field.
void divide_list(Record& record, const Columns& columns) {
  const auto place =
      static_cast<std::size_t>(std::ranges::find(columns.required, columns.list) - columns.required.begin());
  if (place == columns.required.size() || record.fields[place].empty()) return;
  std::istringstream texts(std::exchange(record.fields[place], {}));
  for (std::string text; std::getline(texts >> std::ws, text, ',');)
    record.list.push_back(text.substr(0, text.find_last_not_of(' ') + 1));
}

// The index of each column in a line; -1: absent.
struct ColumnPositions {
  std::vector<std::int64_t> of_column;
  std::size_t width = 0;
  bool has_header = false;
};

// A value of --columns for these columns: each name's own column, else a label's where it usually stands,
// else the next that is no number of a row.
std::string proposed(const std::vector<std::string_view>& parts, const std::vector<std::string>& names) {
  const auto is_free = [&](std::string_view part) { return std::ranges::count(names, part) == 0; };
  std::vector<std::string_view> labels, others;
  for (const std::string_view part : parts)
    if (is_free(part) && part != "id" && part != "idx" && part != "index")
      (names_a_label(part) ? labels : others).push_back(part);
  const auto next = [](std::vector<std::string_view>& from) {
    const std::string_view first = from.front();
    from.erase(from.begin());
    return first;
  };
  std::map<std::string_view, std::string> by_part;
  for (const std::string& name : names) {
    const bool is_label = names_a_label(name);
    auto &first = is_label ? labels : others, &second = is_label ? others : labels;
    if (std::ranges::count(parts, name) > 0) by_part[name] = name;
    else if (!first.empty()) by_part[next(first)] = name;
    else if (!second.empty()) by_part[next(second)] = name;
  }
  std::vector<std::string> pairs;
  for (const std::string_view part : parts)
    if (by_part.contains(part)) pairs.push_back(by_part[part] + "=" + std::string(part));
  return joined(pairs, ",");
}

// What a first row says that looks like names and does not give the required ones.
FieldError unknown_header(const Line& line, const std::vector<std::string_view>& parts,
                          const Columns& columns, bool has_commas) {
  const std::vector<std::string> names = columns.names();
  const std::string between = has_commas ? "," : "\t";
  const std::vector<std::string> row(parts.begin(), parts.end());
  return FieldError(line, ": '", joined(row, between), "' looks like the names of columns, but ",
                    joined(columns.required), " are not all there; name them by ", Field{"columns"}, " ",
                    proposed(parts, names), ", or put a line '", joined(names, has_commas ? "," : "<TAB>"),
                    "' above it if it is an example");
}

bool is_name(std::string_view text) {
  return !text.empty() && is_ascii_letter(text[0]) && std::ranges::all_of(text, [](char c) {
    return is_ascii_letter(c) || is_ascii_digit(c) || c == '_';
  });
}

// True if the first record of a table without a header reads like one: names, under a label that stands
// nowhere else, while each other label stands more than once.
bool begins_with_names(const std::vector<Record>& records, const std::vector<std::string>& columns) {
  const auto label = static_cast<std::size_t>(std::ranges::find(columns, "label") - columns.begin());
  const auto is_name_or_empty = [](const std::string& field) { return field.empty() || is_name(field); };
  if (label == columns.size() || records.empty() || !std::ranges::all_of(records[0].fields, is_name_or_empty))
    return false;
  std::map<std::string_view, int> times;
  for (const Record& record : records) ++times[record.fields[label]];
  const std::string& first = records[0].fields[label];
  return times.size() > 1 && std::ranges::all_of(times, [&](const auto& each) {
           return (each.first == first) == (each.second == 1);
         });
}

bool has_commas(const std::string& name) { return ending_of(name) == ".csv"; }

// A row of a table, which may go on after its line.
struct Row {
  Line line;
  std::vector<std::string_view> parts;
};

// The rows of a .csv file (RFC 4180): a field in quotes may hold commas, line breaks and, doubled, quotes.
class CsvRows {
 public:
  CsvRows(std::string_view text, const std::string& name, std::int64_t first_line)
      : text_(text), name_(name), line_(first_line) {
    text_ = text_.substr(0, text_.find_last_not_of("\r\n") + 1);
  }

  bool going() const { return at_ < text_.size(); }

  Row next() {
    Row row{here(), {}};
    const std::size_t begin = at_;
    fields_.clear();
    do fields_.push_back(field());
    while (at_ < text_.size() && text_[at_++] == ',');
    row.line.text = text_.substr(begin, at_ - begin);
    row.line.text = row.line.text.substr(0, row.line.text.find_last_not_of("\r\n") + 1);
    row.parts.assign(fields_.begin(), fields_.end());
    ++line_;
    return row;
  }

 private:
  Line here() const { return {line_, {}, name_}; }

  // Ends at a comma, a line's end or the text's end.
  std::string field() {
    if (at_ == text_.size() || text_[at_] != '"') {
      const std::size_t begin = at_;
      at_ = std::min(text_.find_first_of(",\n", at_), text_.size());
      const bool in_line = at_ > begin && text_[at_ - 1] == '\r' && text_.substr(at_).starts_with('\n');
      return std::string(text_.substr(begin, at_ - begin - (in_line ? 1 : 0)));
    }
    const Line line = here();
    std::string field;
    for (++at_;; ++at_) {
      if (at_ == text_.size()) throw Error(line, ": a quote is not closed");
      if (text_[at_] == '"' && !text_.substr(at_ + 1).starts_with('"')) break;
      if (text_[at_] == '"') ++at_;
      line_ += text_[at_] == '\n' ? 1 : 0;
      field += text_[at_];
    }
    ++at_;
    if (text_.substr(at_).starts_with("\r\n")) ++at_;
    if (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n')
      throw Error(here(), ": expected a comma or the line's end after the closing quote");
    return field;
  }

  std::string_view text_;
  const std::string& name_;
  std::int64_t line_;
  std::size_t at_ = 0;
  std::vector<std::string> fields_;
};

ColumnPositions find_columns(const Row& first, bool with_commas, const Columns& columns,
                             FileColumns& in_file) {
  const auto& [line, parts] = first;
  const std::vector<std::string> names = columns.names();
  std::vector<std::string> ours;
  for (const std::string_view part : parts) ours.push_back(in_file.ours(part));
  ColumnPositions places{.width = parts.size()};
  for (const std::string& column : names) {
    const auto found = std::ranges::find(ours, column);
    if (!in_file.own.empty() && std::ranges::count(ours, column) > 1)
      throw FieldError(line, ": two columns are '", column, "' by ", Field{"columns"});
    places.of_column.push_back(found == ours.end() ? -1 : found - ours.begin());
  }
  const auto required = places.of_column.begin() + static_cast<std::ptrdiff_t>(columns.required.size());
  places.has_header = std::find(places.of_column.begin(), required, -1) == required;
  if (places.has_header) {
    in_file.check(ours, names, line);
    return places;
  }
  if (!in_file.own.empty())
    throw FieldError(line, ": ", Field{"columns"}, " does not make its names '", line.text, "' to ",
                     joined(columns.required));
  if (looks_like_names(parts) && !in_file.renames)
    throw Error(line, ": '", line.text, "' looks like the names of columns, but ", joined(columns.required),
                " are not all there");
  if (looks_like_names(parts)) throw unknown_header(line, parts, columns, with_commas);
  if (parts.size() < columns.required.size() || parts.size() > names.size())
    throw Error(line, ": expected the columns ", joined(names), with_commas ? " with commas" : " with tabs",
                " between them, found ", parts.size(), parts.size() == 1 ? " column" : " columns");
  for (std::size_t i = 0; i < names.size(); ++i)
    places.of_column[i] = i < parts.size() ? static_cast<std::int64_t>(i) : -1;
  return places;
}

Record read_columns(const Row& row, const ColumnPositions& places) {
  const auto& [line, parts] = row;
  if (parts.size() != places.width)
    throw Error(line, ": expected ", places.width, " columns as in the first line, found ", parts.size());
  Record record{line.number, {}};
  for (const std::int64_t place : places.of_column)
    record.fields.emplace_back(place < 0 ? std::string_view() : parts[static_cast<std::size_t>(place)]);
  record.is_empty = record.fields[0].empty();
  return record;
}

}  // namespace

std::vector<std::string> first_names(std::string_view text, const std::string& name) {
  std::vector<std::string> names;
  const std::vector<Line> lines = lines_of(text, name);
  if (lines.empty()) return names;
  if (ending_of(name) == ".jsonl") {
    const nlohmann::json first = parse_object(lines[0]);
    for (const auto& [key, value] : first.items()) names.push_back(key);
  } else {
    CsvRows rows(text, name, 1);
    const Row row = has_commas(name) ? rows.next() : Row{lines[0], split(lines[0].text, '\t')};
    names.assign(row.parts.begin(), row.parts.end());
  }
  return names;
}

std::vector<Record> parse_records(std::string_view text, const std::string& name, const Columns& columns) {
  FileColumns names;
  return parse_records(text, name, columns, names);
}

std::vector<Record> parse_records(std::string_view text, const std::string& name, const Columns& columns,
                                  FileColumns& names, std::int64_t first_line) {
  const bool is_jsonl = ending_of(name) == ".jsonl";
  if (!is_jsonl) require_utf8(text, name);  // JSON is, line by line
  std::vector<Record> records;
  std::int64_t skipped = 0;
  const auto add = [&](Record record) {
    if (columns.skips_empty && record.is_empty) {
      ++skipped;
      return;
    }
    require_fields(record, columns, name, names.renames);
    divide_list(record, columns);
    records.push_back(std::move(record));
  };
  std::optional<ColumnPositions> places;
  const auto add_row = [&](const Row& row) {
    const bool is_first = !places;
    if (is_first) places = find_columns(row, has_commas(name), columns, names);
    if (!is_first || !places->has_header) add(read_columns(row, *places));
  };
  if (has_commas(name)) {
    for (CsvRows rows(text, name, first_line); rows.going();) add_row(rows.next());
  } else {
    for (Line line : lines_of(text, name)) {
      line.number += first_line - 1;
      if (is_jsonl) {
        add(read_record(line, columns, names));
      } else {
        add_row({line, split(line.text, '\t')});
      }
    }
  }
  if (places && !places->has_header && names.renames && begins_with_names(records, columns.names())) {
    std::vector<std::string_view> parts(records[0].fields.begin(), records[0].fields.end());
    std::erase(parts, "");
    throw unknown_header({records[0].line, {}, name}, parts, columns, has_commas(name));
  }
  names.empty_rows += skipped;
  if (records.empty() && skipped == 0)
    throw Error(name, ": holds no example; expected lines of ", joined(columns.names()));
  return records;
}

}  // namespace zoo
