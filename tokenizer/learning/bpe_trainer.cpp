#include "tokenizer/learning/bpe_trainer.h"

#include <nlohmann/json.hpp>

#include "data/base/atomic_file.h"
#include "data/base/json_file.h"
#include "tokenizer/learning/trained_files.h"
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

json byte_level(bool add_prefix_space, bool trim_offsets, bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", trim_offsets},
          {"use_regex", use_regex}};
}

json pre_tokenizer(SplitPattern pattern) {
  if (pattern == SplitPattern::gpt2) return byte_level(false, true, true);
  const json split = {{"type", "Split"},
                      {"pattern", {{"Regex", expression_of(pattern)}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  return {{"type", "Sequence"}, {"pretokenizers", {split, byte_level(false, true, false)}}};
}

}  // namespace

LearntMerges train_bpe(std::string_view text, const BpeTrainerOptions& options) {
  require_utf8(text, "the training text");
  MergeTrainerOptions merging{.vocab_size = options.vocab_size,
                              .min_frequency = options.min_frequency,
                              .special_tokens = options.special_tokens,
                              .on_progress = options.on_progress};
  for (int byte = 0; byte < 256; ++byte) {
    merging.initial_alphabet += byte_level_character(static_cast<unsigned char>(byte));
  }
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

  const json model = {{"type", "BPE"},
                      {"dropout", nullptr},
                      {"unk_token", nullptr},
                      {"continuing_subword_prefix", nullptr},
                      {"end_of_word_suffix", nullptr},
                      {"fuse_unk", false},
                      {"byte_fallback", false},
                      {"ignore_merges", false},
                      {"vocab", vocabulary_json(learnt.tokens)},
                      {"merges", std::move(merges)}};
  json config = {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"clean_up_tokenization_spaces", false}};
  if (!options.special_tokens.empty()) {
    for (const char* role : {"bos_token", "eos_token", "unk_token"}) config[role] = options.special_tokens[0];
  }
  write_json(directory / "tokenizer_config.json", config);
  write_json(directory / "tokenizer.json",
             {{"version", "1.0"},
              {"truncation", nullptr},
              {"padding", nullptr},
              {"added_tokens", added_tokens_json(options.special_tokens, learnt.tokens)},
              {"normalizer", nullptr},
              {"pre_tokenizer", pre_tokenizer(options.pattern)},
              {"post_processor", byte_level(true, false, true)},
              {"decoder", byte_level(true, true, true)},
              {"model", model}});
}

}  // namespace zoo
