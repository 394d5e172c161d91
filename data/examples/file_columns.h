#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "data/base/lines.h"

namespace zoo {

/// The names of columns, or of keys of a JSON object, in a file of examples.
struct FileColumns {
  std::map<std::string, std::string> own = {};  // our name by the file's, if they differ
  std::set<std::string> ignored = {};           // output: unused names in the file
  bool renames = true;                          // --columns is there; else no message names it
  std::set<std::string> unread = {};            // our names that are known but not needed
  std::int64_t empty_rows = 0;                  // output: rows left out (Columns::skips_empty)

  /// Parses "text=sentence1,label=class": ours, then the file's. Throws Error for any other format.
  static FileColumns read(const std::string& flag);

  /// Our name for a name in the file.
  std::string ours(std::string_view theirs) const;

  /// Adds names of `found` (ours) that are not in `known` to `ignored`. Throws Error naming file and line if
  /// one resembles a known name that `found` lacks, or if a name of `own` is not in `known`.
  void check(std::span<const std::string> found, std::span<const std::string> known, const Line& line);

  /// The object in a line of a .jsonl file, with our names for its keys, after check().
  nlohmann::json read_object(const Line& line, std::span<const std::string> known);
  /// The same with the keys in the file's order.
  nlohmann::ordered_json read_ordered_object(const Line& line, std::span<const std::string> known);

 private:
  template <class Json>
  Json renamed(const Json& theirs, const Line& line, std::span<const std::string> known);
};

/// True for usual names of columns, for example "sentence1" and "label".
bool looks_like_names(std::span<const std::string_view> parts);
/// True for usual names of a class or number: "label", "airline_sentiment", "score".
bool names_a_label(std::string_view name);

}  // namespace zoo
