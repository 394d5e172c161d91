#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "data/base/lines.h"

namespace zoo {

/// The names of columns, or of keys of a JSON object, in a file of examples.
struct FileColumns {
  std::map<std::string, std::string> own = {};  // by the file's name: ours, where they differ
  std::set<std::string> ignored = {};           // output: names in the file that nothing reads

  /// Reads "text=sentence1,label=class": ours, then the file's. Throws Error for another form.
  static FileColumns read(const std::string& flag);

  /// Our name for one in the file.
  std::string ours(std::string_view theirs) const;

  /// Notes which of `found`, by our names, are not in `known`. Throws Error naming file and line if one
  /// resembles a known name that `found` lacks, or if an own name stands for none in `known`.
  void check(std::span<const std::string> found, std::span<const std::string> known, const Line& line,
             const std::string& file);

  /// The object in a line of a .jsonl file, with our names for its keys, which are checked.
  nlohmann::json read_object(const Line& line, const std::string& file, std::span<const std::string> known);
};

/// True if the parts of a line are words that name columns in many files, like "sentence1" and "label".
bool looks_like_names(std::span<const std::string_view> parts);

}  // namespace zoo
