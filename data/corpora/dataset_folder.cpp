#include "data/corpora/dataset_folder.h"

#include <cctype>
#include <set>
#include <string_view>
#include <vector>

#include "data/base/ending.h"
#include "data/base/error.h"
#include "data/base/lines.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

// By DatasetSplit.
const std::vector<std::string> kSplitNames[] = {
    {"train"}, {"validation", "valid", "val", "dev"}, {"test", "eval"}};

// ".jsonl.gz" of "train.jsonl.gz"; "" of a file that is no dataset.
std::string data_ending(const fs::path& file) {
  static const std::set<std::string> kinds{".jsonl", ".csv", ".tsv", ".txt", ".parquet", ".arrow"};
  const std::string last = ending_of(file);
  if (kinds.contains(last)) return file.extension();
  const bool packed = (last == ".gz" || last == ".zst") && kinds.contains(ending_of(file.stem()));
  return packed ? file.stem().extension().string() + file.extension().string() : "";
}

// Neither "trainer.txt" nor "validation.txt" for "val".
bool is_of(std::string_view file, std::string_view split) {
  return file.starts_with(split) && file.size() > split.size() &&
         std::isalpha(static_cast<unsigned char>(file[split.size()])) == 0;
}

std::set<std::string> patterns_in(const fs::path& folder, DatasetSplit split) {
  std::set<std::string> patterns;
  if (!fs::is_directory(folder)) return patterns;
  for (const std::string& name : kSplitNames[static_cast<std::size_t>(split)]) {
    const fs::path inner = folder / name;
    const bool saved = fs::exists(inner / "state.json");
    if (saved) patterns.insert(inner / "data-*.arrow");
    if (fs::is_directory(inner) && !saved) {
      for (const fs::directory_entry& entry : fs::directory_iterator(inner))
        if (const std::string ending = data_ending(entry.path()); !ending.empty())
          patterns.insert(inner / ("*" + ending));
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      const std::string ending = data_ending(entry.path());
      if (!ending.empty() && is_of(entry.path().filename().native(), name))
        patterns.insert(folder / (name + "[!a-zA-Z]*" + ending.substr(1)));
    }
  }
  return patterns;
}

}  // namespace

std::optional<std::string> files_of_split(const fs::path& directory, DatasetSplit split) {
  if (fs::exists(directory / "state.json") && split == DatasetSplit::kTrain)
    return directory / "data-*.arrow";
  std::set<std::string> patterns = patterns_in(directory, split);
  patterns.merge(patterns_in(directory / "data", split));
  if (patterns.empty()) {
    for (const fs::directory_entry& entry : fs::directory_iterator(directory))
      if (entry.is_directory() && !patterns_in(entry.path(), split).empty()) patterns.insert(entry.path());
    if (patterns.empty()) return std::nullopt;
  } else if (patterns.size() == 1) {
    return *patterns.begin();
  }
  const std::vector<std::string> found(patterns.begin(), patterns.end());
  throw Error(directory, " holds several datasets (", joined(found), "); name one of them");
}

}  // namespace zoo
