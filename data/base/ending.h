#pragma once

#include <algorithm>
#include <filesystem>
#include <string>

namespace zoo {

/// The ending of a file's name in small letters, which decides how the file is read: ".jsonl", ".csv", ".gz".
inline std::string ending_of(const std::filesystem::path& file) {
  std::string ending = file.extension().string();
  std::ranges::transform(ending, ending.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  return ending;
}

/// True for a table with commas or tabs between its columns.
inline bool has_columns(const std::filesystem::path& file) {
  const std::string ending = ending_of(file);
  return ending == ".csv" || ending == ".tsv";
}

/// True for a table, with columns or with an object on each line.
inline bool is_table(const std::filesystem::path& file) {
  return ending_of(file) == ".jsonl" || has_columns(file);
}

}  // namespace zoo
