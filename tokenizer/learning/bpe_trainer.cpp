#include "tokenizer/learning/bpe_trainer.h"

#include <nlohmann/json.hpp>

#include "data/base/atomic_file.h"
#include "data/base/json_file.h"
#include "tokenizer/pipeline/tokenizer_json_writer.h"
#include "tokenizer/text/byte_level.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

using nlohmann::json;

WordCounts count_words(std::string_view text, const BpeTrainerOptions& options) {
  WordCounts raw;
  for_each_training_line(text, options.on_progress, [&](std::string_view line) {
    split_words(options.pattern, line, [&](std::string_view word) { raw.add(word); });
  });
  WordCounts words;
  for (const auto& [word, count] : raw) words.add(to_byte_level(word), count);
  return words;
}

json pre_tokenizer(SplitPattern pattern) {
  if (pattern == SplitPattern::gpt2) return byte_level_json(false, true, true);
  const json split = {{"type", "Split"},
                      {"pattern", {{"Regex", expression_of(pattern)}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  return {{"type", "Sequence"}, {"pretokenizers", {split, byte_level_json(false, true, false)}}};
}

}  // namespace

LearntMerges train_bpe(std::string_view text, const BpeTrainerOptions& options) {
  require_utf8(text, "the training text");
  MergeTrainerOptions merging{.vocab_size = options.vocab_size,
                              .min_frequency = options.min_frequency,
                              .special_tokens = options.special_tokens,
                              .on_progress = options.on_progress};
  for (int byte = 0; byte < 256; ++byte)
    merging.initial_alphabet += byte_level_character(static_cast<unsigned char>(byte));
  return learn_merges(count_words(text, options), merging);
}

void save_bpe(const LearntMerges& learnt, const BpeTrainerOptions& options,
              const std::filesystem::path& directory) {
  std::string lines = "#version: 0.2\n";
  json merges = json::array();
  for (const auto& [left, right] : learnt.merges) {
    const std::string& first = learnt.tokens[static_cast<std::size_t>(left)];
    const std::string& second = learnt.tokens[static_cast<std::size_t>(right)];
    lines += first + " " + second + "\n";
    merges.push_back({first, second});
  }
  write_file(directory / "merges.txt", lines);
  write_file(directory / "vocab.json", vocabulary_json(learnt.tokens).dump() + "\n");

  json config = fast_tokenizer_config();
  if (!options.special_tokens.empty()) {
    for (const char* role : {"bos_token", "eos_token", "unk_token"}) config[role] = options.special_tokens[0];
  }
  write_json(directory / "tokenizer_config.json", config);
  write_tokenizer_json(directory, {{"added_tokens", added_tokens_json(options.special_tokens, learnt.tokens)},
                                   {"pre_tokenizer", pre_tokenizer(options.pattern)},
                                   {"post_processor", byte_level_json(true, false, true)},
                                   {"decoder", byte_level_json(true, true, true)},
                                   {"model", bpe_model_json(learnt.tokens, std::move(merges))}});
}

}  // namespace zoo
