#include <cmath>
#include <filesystem>

#include "apps/training/batches/document_encoder.h"
#include "apps/verbs/train/train_data.h"
#include "data/base/lines.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

// What a new tokenizer learns from.
std::string training_text(const std::string& dataset, const DataFlags& flags) {
  if (is_token_dataset(dataset)) return "";
  const Source source = read_source(dataset, flags.task);
  if (source.is_table())
    return DocumentEncoder::sample(source.text, source.name, FileColumns::read(flags.columns)) + "\n";
  const std::string_view begin = source.text.substr(0, kLargeText);
  return std::string(begin.substr(0, begin.size() - incomplete_utf8_tail(begin))) + "\n";
}

void check_token_folder(const std::string& folder, const DataFlags& flags) {
  if (flags.val_dataset || !flags.columns.empty() || flags.tokenizer)
    throw UsageError("--val_dataset, --columns, --tokenizer: not with token files, as in ", folder);
  if (!has_tokenizer(folder))
    throw Error("--dataset: ", folder, " holds no tokenizer to compare with that of the other datasets");
}

}  // namespace

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
    check_token_folder(part.dataset, flags);
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
