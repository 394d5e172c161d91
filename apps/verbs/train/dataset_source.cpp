#include <cmath>
#include <filesystem>
#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/command/progress.h"
#include "apps/training/batches/document_encoder.h"
#include "apps/verbs/train/train_data.h"
#include "data/base/lines.h"
#include "data/base/mapped_file.h"
#include "data/corpora/corpora.h"
#include "data/corpora/dataset_folder.h"
#include "data/corpora/sha256.h"
#include "data/corpora/text_file.h"
#include "data/examples/generators.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kToySeed = 1;

constexpr std::size_t kPiece = 1 << 20, kPieces = 16;

// What a new tokenizer learns from.
std::string training_text(const std::string& dataset, const DataFlags& flags) {
  if (is_token_dataset(dataset)) return "";
  const Source source = read_source(dataset, flags.task);
  if (source.is_table())
    return DocumentEncoder::sample(source.text, source.name, FileColumns::read(flags.columns)) + "\n";
  const std::string_view begin = source.text.substr(0, kLargeText);
  return std::string(begin.substr(0, begin.size() - incomplete_utf8_tail(begin))) + "\n";
}

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
  // Training on a large one begins before it could be read.
  const bool by_lines = task == Task::kLm && path.extension() == ".jsonl" && fs::file_size(path) > kLargeText;
  const auto file =
      std::make_shared<const TextFile>(path, by_lines ? Utf8Check::by_reader : Utf8Check::whole);
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
  const nlohmann::json first = parse_object({1, first_line, source.name});
  for (const auto& [key, value] : first.items())
    if (names.ours(key) == "label") return value.is_array();
  return false;
}

TokenFile encode_part(const Tokenizer& tokenizer, const TextEncoder& encoder, std::string_view text,
                      const std::string& name) {
  if (text.size() <= kLargeText) {
    TokenIds all;
    encode_in_parts(text, encoder, 0, [&](std::span<const TokenId> ids, std::size_t) {
      all.insert(all.end(), ids.begin(), ids.end());
    });
    return {std::move(all), name};
  }
  constexpr std::size_t kMegabyte = 1'000'000;
  const fs::path directory = data_directory();
  std::cerr << "note: the ids of " << name << " are on disk meanwhile, in " << directory
            << "; 'tzoo data prepare' makes token files that last\n";
  Progress progress(static_cast<std::int64_t>(text.size() / kMegabyte), "MB encoded");
  return tokens_on_disk(text, tokenizer, encoder, name, directory, [&](std::size_t bytes) {
    progress.update(static_cast<std::int64_t>(bytes / kMegabyte));
  });
}

TokenFile text_blocks(const Source& source, std::string_view part, TextEncoder encoder,
                      std::vector<std::shared_ptr<const void>> owners,
                      std::function<void(std::string_view)> check) {
  owners.push_back(source.owner);
  encoder.encode = [owners = std::move(owners), encode = std::move(encoder.encode)](std::string_view text) {
    return encode(text);
  };
  return {std::make_shared<const TextBlocks>(part, std::move(encoder), source.name, std::move(check)),
          source.name};
}

TokenFile text_blocks(const Source& source, std::string_view part,
                      const std::shared_ptr<const Tokenizer>& tokenizer) {
  TextEncoder encoder = TextEncoder::of(*tokenizer);
  encoder.encode = [text = source.text, name = source.name, encode = encoder.encode](std::string_view each) {
    try {
      return encode(each);
    } catch (const Error& error) {
      throw Error(name, ", from byte ", each.data() - text.data(), " on: ", error.what());
    }
  };
  std::function<void(std::string_view)> check;  // only these tokenizers refuse characters
  if (tokenizer->kind() == "char") check = [encode = encoder.encode](std::string_view each) { encode(each); };
  return text_blocks(source, part, std::move(encoder), {tokenizer}, std::move(check));
}

bool divides_often(std::string_view text, const TextEncoder& encoder) {
  constexpr std::size_t kPlaces = 64, kMostMean = 1 << 16;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < kPlaces; ++i) {
    const std::size_t at = text.size() / kPlaces * i;
    bytes += encoder.division(text, at + 1) - at;
  }
  return bytes <= kPlaces * kMostMean;
}

TokenFile encode_file(const Tokenizer& tokenizer, std::string_view text, const std::string& name) {
  try {
    if (text.size() > kLargeText) return encode_part(tokenizer, TextEncoder::of(tokenizer), text, name);
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

std::vector<MixturePart> mixture_of(const std::string& dataset) {
  if (std::filesystem::exists(dataset)) return {};
  std::vector<MixturePart> parts;
  std::string without;  // a weight
  for (std::size_t begin = 0; begin <= dataset.size();) {
    const std::size_t end = std::min(dataset.find(',', begin), dataset.size());
    const std::string part = dataset.substr(begin, end - begin);
    const std::size_t colon = std::min(part.rfind(':'), part.size());
    const auto weight = number_in<double>(std::string_view(part).substr(std::min(colon + 1, part.size())));
    if (weight && !(*weight > 0 && std::isfinite(*weight)))
      throw UsageError("--dataset: the weight of '", part, "' must be a number above 0");
    if (weight) parts.push_back({part.substr(0, colon), *weight});
    if (!weight) without = part;
    begin = end + 1;
  }
  if (!parts.empty() && !without.empty())
    throw UsageError("--dataset: '", without,
                     "' has no weight; expected one after each, as in a.txt:2,b.txt:1");
  return parts;
}

TaskData read_mixture(const std::vector<MixturePart>& parts, const DataFlags& flags, Shape shape,
                      const KnownModel& known, bool evaluates) {
  KnownModel shared = known;
  for (const MixturePart& part : parts) {
    if (!is_token_dataset(part.dataset)) continue;
    if (flags.val_dataset || !flags.columns.empty() || flags.tokenizer)
      throw UsageError("--val_dataset, --columns, --tokenizer: not with token files, as in ", part.dataset);
    if (!has_tokenizer(part.dataset))
      throw Error("--dataset: ", part.dataset,
                  " holds no tokenizer to compare with that of the other datasets");
    if (!shared.tokenizer) shared.tokenizer = load_tokenizer(part.dataset);
  }
  for (std::size_t i = 0; i < parts.size() && !shared.tokenizer; ++i)
    shared.mixture_text += training_text(parts[i].dataset, flags);

  TaskData all;
  double weights = 0;
  bool knows_bytes = true;
  for (const auto& [dataset, weight] : parts) {
    DataFlags own = flags;
    own.dataset = dataset;
    TaskData data = read_task_data(own, shape, shared, evaluates);
    if (!data.tokens)
      throw UsageError("--dataset: the task ", name_of(flags.task), " reads ", data.source,
                       " as examples, which have no mixtures");
    data.tokens->weight = weight;
    knows_bytes = knows_bytes && data.bytes_per_token > 0;
    const double bytes = all.bytes_per_token * weights + data.bytes_per_token * weight;
    weights += weight;
    if (all.tokens) {
      all.source += ", " + data.source;
      all.sha256 += data.sha256;
      all.tokens->others.push_back(std::move(*data.tokens));
    } else {
      all = std::move(data);
      shared.tokenizer = all.tokenizer;
    }
    all.bytes_per_token = knows_bytes ? bytes / weights : 0;
  }
  return all;
}

void require_ids_below(const TaskData& data, std::int64_t vocab_size) {
  if (data.tokenizer && data.tokenizer->id_count() > vocab_size)
    throw Error(data.source, ": the tokenizer has ", data.tokenizer->vocab_size(),
                " tokens, the model's vocabulary only ", vocab_size);
  if (!data.tokens) return;
  const auto require = [&](const TokenDataset& tokens) {
    tokens.train.require_ids_below(vocab_size);
    tokens.val.require_ids_below(vocab_size);
  };
  require(*data.tokens);
  for (const TokenDataset& other : data.tokens->others) require(other);
}

}  // namespace zoo
