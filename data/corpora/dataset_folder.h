#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace zoo {

/// The parts of a dataset, as Hugging Face's datasets calls them.
enum class DatasetSplit { kTrain, kValidation, kTest };

/// A pattern of the files of a split in a directory, by the names of Hugging Face's datasets; or none:
///   on the hub        train-00000-of-00002.parquet, train.jsonl, validation/0.csv.gz, …; also in data/
///   save_to_disk()    data-00000-of-00001.arrow beside state.json, or in a directory for each split
/// Throws Error naming the patterns if there are several, or the directories below that have a split each.
std::optional<std::string> files_of_split(const std::filesystem::path& directory, DatasetSplit split);

}  // namespace zoo
