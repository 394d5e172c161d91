#include <filesystem>
#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/command/progress.h"
#include "apps/verbs/train/train_data.h"
#include "data/base/error.h"
#include "data/base/lines.h"
#include "data/base/mapped_file.h"
#include "data/corpora/corpora.h"
#include "data/corpora/dataset_folder.h"
#include "data/corpora/sha256.h"
#include "data/corpora/text_file.h"
#include "data/examples/generators.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kToySeed = 1;

constexpr std::size_t kPiece = 1 << 20, kPieces = 16;

}  // namespace

std::string fingerprint(std::string_view bytes) {
  if (bytes.size() <= kPieces * kPiece) return sha256(bytes);
  std::string drawn = std::to_string(bytes.size());
  for (std::size_t i = 0; i < kPieces; ++i)
    drawn += bytes.substr((bytes.size() - kPiece) / (kPieces - 1) * i, kPiece);
  return sha256(drawn);
}

std::string fingerprint_of_file(const fs::path& path) {
  const MappedFile file(path);
  return fingerprint({reinterpret_cast<const char*>(file.data()), file.bytes().size()});
}

std::vector<std::string> dataset_names() {
  std::vector<std::string> names = corpus_names();
  for (std::string& name : toy_set_names()) names.push_back(std::move(name));
  return names;
}

Source read_source(const std::string& dataset, Task task) {
  if (is_toy_set(dataset) && !fs::exists(dataset)) {
    const bool pairs = task == Task::kSeq2Seq;
    const std::int64_t count = find_toy_set(dataset).examples;
    const auto made = std::make_shared<const std::string>(pairs ? make_toy_pairs(dataset, count, kToySeed)
                                                                : make_toy_set(dataset, count, kToySeed));
    return {made, *made,
            dataset +
                (task == Task::kLm || task == Task::kMlm || task == Task::kSpanCorruption ? ".txt" : ".tsv")};
  }
  const fs::path path = resolve_dataset(dataset);
  const auto file = std::make_shared<const TextFile>(path);
  const bool unpacked = path != dataset && std::ranges::count(corpus_names(), dataset) == 0;
  return {file, file->text(), unpacked ? dataset + " as " + path.string() : path.string()};
}

std::optional<std::string> validation_of(const DataFlags& flags) {
  if (flags.val_dataset || !fs::is_directory(flags.dataset)) return flags.val_dataset;
  return files_of_split(flags.dataset, DatasetSplit::kValidation);
}

std::string evaluated_part(const std::string& dataset) {
  if (!fs::is_directory(dataset)) return dataset;
  for (const DatasetSplit split : {DatasetSplit::kValidation, DatasetSplit::kTest})
    if (const auto files = files_of_split(dataset, split)) return *files;
  throw Error("--dataset: ", dataset, " has neither a validation nor a test split; name its files, as in '",
              dataset, "/*.jsonl'");
}

bool begins_with_list(const Source& source, const FileColumns& names) {
  if (ending_of(source.name) != ".jsonl") return false;
  const std::string_view first_line = std::string_view(source.text).substr(0, source.text.find('\n'));
  const nlohmann::json first = parse_object({1, first_line}, source.name);
  for (const auto& [key, value] : first.items())
    if (names.ours(key) == "label") return value.is_array();
  return false;
}

TokenFile encode_large(const Tokenizer& tokenizer, const TextEncoder& encoder, std::string_view text,
                       const std::string& name) {
  constexpr std::size_t kMegabyte = 1'000'000;
  const fs::path directory = data_directory();
  std::cerr << "note: the ids of " << name << " are on disk meanwhile, in " << directory
            << "; 'tzoo data prepare' makes token files that last\n";
  Progress progress(static_cast<std::int64_t>(text.size() / kMegabyte), "MB encoded");
  return tokens_on_disk(text, tokenizer, encoder, name, directory, [&](std::size_t bytes) {
    progress.update(static_cast<std::int64_t>(bytes / kMegabyte));
  });
}

TokenFile encode_file(const Tokenizer& tokenizer, std::string_view text, const std::string& name) {
  try {
    if (text.size() > kLargeText) return encode_large(tokenizer, TextEncoder::of(tokenizer), text, name);
    return TokenFile(tokenizer.encode(text), name);
  } catch (const Error& error) {
    throw Error(name, ": ", error.what());
  }
}

TokenDataset tokenize_file(const Tokenizer& tokenizer, std::string_view text, const std::string& name) {
  if (text.size() > kLargeText) {
    const std::size_t end = validation_begin(text);
    return {encode_file(tokenizer, text.substr(0, end), name),
            encode_file(tokenizer, text.substr(end), name)};
  }
  try {
    return tokenize_dataset(text, tokenizer);
  } catch (const Error&) {
    encode_file(tokenizer, text, name);  // an error names the line in the whole file, not in a split
    throw;
  }
}

TaskData read_token_folder(const DataFlags& flags, const KnownModel& known, TaskTextStyle style,
                           bool evaluates) {
  if (flags.task != Task::kLm && flags.task != Task::kMlm && flags.task != Task::kSpanCorruption)
    throw Error("--dataset: token files cannot be used for the task ", name_of(flags.task),
                "; give a text or a table");
  TaskData data;
  data.source = flags.dataset;
  data.tokens = load_token_dataset(flags.dataset);
  if (!evaluates) {
    for (const char* split : {"train.bin", "val.bin"})
      data.sha256 += fingerprint_of_file(fs::path(flags.dataset) / split);
  }
  data.tokenizer = known.tokenizer;
  if (has_tokenizer(flags.dataset)) {
    std::shared_ptr<const Tokenizer> own = load_tokenizer(flags.dataset);
    if (!data.tokenizer) data.tokenizer = own;
    if (const auto id = first_other_token(*own, *data.tokenizer))
      throw Error("--dataset: ", flags.dataset, " was encoded with another tokenizer, whose id ", *id,
                  " is another token");
  }
  if (flags.task != Task::kLm) {
    if (!data.tokenizer)
      throw Error("--dataset: ", flags.dataset, " holds no tokenizer, which this task needs");
    require_special_tokens(*data.tokenizer, style);
  }
  return data;
}

}  // namespace zoo
