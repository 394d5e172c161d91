#include "apps/verbs/calibration_text.h"

#include <algorithm>
#include <string_view>

#include "data/base/error.h"
#include "data/corpora/corpora.h"
#include "data/corpora/text_file.h"
#include "models/tasks/encoding_batch.h"
#include "tokenizer/tokenizer.h"

namespace zoo {
namespace {

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

}  // namespace

CalibrationText calibration_text(const CheckpointConfig& checkpoint, const std::string& name) {
  if (!has_tokenizer(checkpoint.directory))
    throw Error("--calibration: ", checkpoint.directory, " holds no tokenizer to encode the text");
  const auto tokenizer = load_tokenizer(checkpoint.directory, checkpoint.json.get());
  require_fit(*tokenizer, checkpoint.config, checkpoint.directory);
  const auto longest = static_cast<std::size_t>(checkpoint.config.max_length());
  const std::size_t length = std::min({kLongest, longest, tokenizer->limits().max_length.value_or(longest)});
  const std::string text = read_text(resolve_dataset(name));
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

}  // namespace zoo
