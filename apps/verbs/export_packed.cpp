#include <algorithm>
#include <string_view>

#include "apps/command/progress.h"
#include "apps/hub/hub_cache.h"
#include "apps/training/batches/document_encoder.h"
#include "apps/verbs/checkpoint_files.h"
#include "apps/verbs/export_formats.h"
#include "data/base/atomic_file.h"
#include "data/base/ending.h"
#include "data/base/error.h"
#include "data/corpora/corpora.h"
#include "data/corpora/text_file.h"
#include "models/checkpoint/checkpoint.h"
#include "models/inference/save_packed.h"
#include "models/tasks/encoding_batch.h"
#include "models/tasks/inference_loading.h"
#include "tokenizer/tokenizer.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kTokens = 32768, kLongest = 512, kBytesOfToken = 4;
// An encoder reads a line at a time, as it mostly does: its first token and short texts weigh much.
constexpr std::size_t kLines = 1024;

// Consecutive lines of at least `bytes` bytes; the last ones may be shorter.
std::vector<std::string_view> passages_of(std::string_view text, std::size_t bytes) {
  std::vector<std::string_view> passages;
  while (!text.empty()) {
    const std::size_t line = text.size() > bytes ? text.find('\n', bytes) : std::string_view::npos;
    const std::size_t size = line == std::string_view::npos ? text.size() : line + 1;
    passages.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return passages;
}

// Passages of a dataset's text, for an encoder lines, evenly spread over it: about 32,768 tokens in all.
// Throws Error if there is no tokenizer or no text, or the tokenizer's ids do not fit the model.
CalibrationText calibration_text(const CheckpointConfig& checkpoint, const std::string& name) {
  if (!has_tokenizer(checkpoint.directory))
    throw Error("--calibration: ", checkpoint.directory, " holds no tokenizer to encode the text");
  const auto tokenizer = load_tokenizer(checkpoint.directory, checkpoint.json.get());
  require_fit(*tokenizer, checkpoint.config, checkpoint.directory);
  const auto longest = static_cast<std::size_t>(checkpoint.config.max_length());
  const std::size_t length = std::min({kLongest, longest, tokenizer->limits().max_length.value_or(longest)});
  const fs::path path = resolve_dataset(name);
  std::string text = read_text(path);
  if (is_table(path)) text = DocumentEncoder::sample(text, path.string(), {.renames = false});
  const bool lines = checkpoint.config.shape == Shape::kEncoder;
  const std::vector<std::string_view> passages = passages_of(text, lines ? 1 : length * kBytesOfToken);
  const std::size_t count = std::min(passages.size(), lines ? kLines : kTokens / length);
  CalibrationText result{.name = name};
  for (std::size_t i = 0; i < count; ++i) {
    const Encoding encoding = tokenizer->encode(passages[i * passages.size() / count],
                                                {.max_length = length, .with_offsets = false});
    if (!encoding.ids.empty()) result.samples.push_back(encoding.ids);
  }
  if (result.samples.empty()) throw Error("--calibration: ", name, " has no text that the tokenizer encodes");
  return result;
}

// Name of a model or adapter in the header: its name on the hub, or the path as it was given.
fs::path name_in_header(const fs::path& given) {
  const fs::path name = model_name(given);
  return name.has_parent_path() ? name : given;
}

}  // namespace

Exported export_packed(const ModelPath& source, const fs::path& target, const std::string& weights,
                       const std::string& calibration) {
  const CheckpointConfig checkpoint = read_checkpoint_config(source);
  CalibrationText text;
  if (!calibration.empty()) {
    text = calibration_text(checkpoint, calibration);
    text.progress = progress_bar("passages");
  }
  check_export_target(source, target);
  AtomicDirectory directory(target);
  const ModelFiles files(checkpoint);
  files.write(directory.path());
  ModelPath named(name_in_header(source));
  if (!source.adapter.empty()) named.adapter = name_in_header(source.adapter);
  save_packed(checkpoint, weight_type_named(weights).value(), named, directory.path(), text);
  text.progress = nullptr;
  check_packed_weights(read_checkpoint_config(directory.path()));
  const SafetensorsFile file(directory.path() / PackedParts::kFile);
  directory.commit();
  Exported made{.bytes = static_cast<std::int64_t>(fs::file_size(target / PackedParts::kFile)),
                .tensors = static_cast<std::int64_t>(file.names().size()),
                .type = weights,
                .not_carried = files.unknown()};
  for (const TokenIds& sample : text.samples)
    made.calibration_tokens = made.calibration_tokens.value_or(0) + std::ssize(sample);
  return made;
}

}  // namespace zoo
