#include "tokenizer/learning/subword_trainers.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "data/base/atomic_file.h"
#include "data/base/error.h"
#include "data/base/json.h"
#include "tokenizer/pipeline/bert_words.h"
#include "tokenizer/pipeline/pipeline.h"
#include "tokenizer/pipeline/tokenizer_json_writer.h"
#include "tokenizer/text/byte_level.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

using nlohmann::json;

// Calls `take` for each line of a text, with its '\n', as in `tokenizers`. Reports the bytes done.
void for_each_line(std::string_view text, const TrainingProgress& on_progress,
                   const std::function<void(std::string_view line)>& take) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t line_end = std::min(text.find('\n', at), text.size() - 1) + 1;
    take(text.substr(at, line_end - at));
    at = line_end;
    if (on_progress)
      on_progress("bytes", static_cast<std::int64_t>(at), static_cast<std::int64_t>(text.size()));
  }
}

WordCounts count_words(std::string_view text, const BpeTrainerOptions& options) {
  WordCounts raw;
  for_each_line(text, options.on_progress, [&](std::string_view line) {
    split_words(options.pattern, line, [&](std::string_view word) {
      if (const auto known = raw.find(word); known != raw.end()) ++known->second;
      else raw.emplace(word, 1);
    });
  });
  WordCounts words;
  for (const auto& [word, count] : raw) words[to_byte_level(word)] += count;
  return words;
}

json pre_tokenizer(SplitPattern pattern) {
  if (pattern == SplitPattern::gpt2) return byte_level_json(false, true, true);
  return sequence_json("pretokenizers",
                       {split_json(expression_of(pattern)), byte_level_json(false, true, false)});
}

json added_tokens(const std::vector<std::string>& special, const std::vector<std::string>& tokens) {
  json added = json::array();
  for (std::size_t id = 0; id < tokens.size(); ++id)
    if (std::ranges::count(special, tokens[id]) > 0)
      added.push_back(added_token_json(special_token(tokens[id], static_cast<TokenId>(id))));
  return added;
}

constexpr const char* kPrefix = "##";

WordCounts count_words(std::string_view text, const WordPieceTrainerOptions& options) {
  const BertWords bert_words(options.normalizer);
  const Normalizer normalize = bert_normalizer(options.normalizer);
  const PreTokenizer pre_tokenize = bert_pre_tokenizer();
  WordCounts words;
  std::vector<std::string> of_line;
  for_each_line(text, options.on_progress, [&](std::string_view line) {
    of_line.clear();
    if (bert_words.split(line, [&](std::string_view word) { of_line.emplace_back(word); })) {
      for (const std::string& word : of_line) ++words[word];
      return;
    }
    SplitText split{AlignedText(line, /*tracks=*/false), {}};
    normalize(split.text);
    split.words = {{0, static_cast<std::uint32_t>(split.text.text.size())}};
    pre_tokenize(split);
    for (const Word& word : split.words) ++words[std::string(split.view(word))];
  });
  return words;
}

void require_special_tokens(const WordPieceTrainerOptions& options) {
  for (const char* token : {"[UNK]", "[CLS]", "[SEP]"})
    if (std::ranges::count(options.special_tokens, token) == 0)
      throw Error("the special tokens of a WordPiece vocabulary lack ", token);
}

json post_processor(const std::vector<std::string>& tokens) {
  return template_json(
      {"[CLS]", "A", "[SEP]"}, {"[CLS]", "A", "[SEP]", "B", "[SEP]"},
      [&](const std::string& token) { return std::ranges::find(tokens, token) - tokens.begin(); });
}

json tokenizer_config(const WordPieceTrainerOptions& options) {
  json config = {{"tokenizer_class", "BertTokenizer"},
                 {"do_lower_case", options.normalizer.lowercase},
                 {"tokenize_chinese_chars", options.normalizer.handle_chinese_chars},
                 {"strip_accents", bert_normalizer_json(options.normalizer)["strip_accents"]}};
  for (const auto& [role, token] :
       {std::pair("pad_token", "[PAD]"), std::pair("unk_token", "[UNK]"), std::pair("cls_token", "[CLS]"),
        std::pair("sep_token", "[SEP]"), std::pair("mask_token", "[MASK]")})
    if (std::ranges::count(options.special_tokens, token) > 0) config[role] = token;
  return config;
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
  write_tokenizer_json(directory, {{"added_tokens", added_tokens(options.special_tokens, learnt.tokens)},
                                   {"pre_tokenizer", pre_tokenizer(options.pattern)},
                                   {"post_processor", byte_level_json(true, false, true)},
                                   {"decoder", byte_level_json(true, true, true)},
                                   {"model", bpe_model_json(learnt.tokens, std::move(merges))}});
}

std::vector<std::string> train_wordpiece(std::string_view text, const WordPieceTrainerOptions& options) {
  require_utf8(text, "the training text");
  require_special_tokens(options);
  return learn_merges(count_words(text, options), {.vocab_size = options.vocab_size,
                                                   .min_frequency = options.min_frequency,
                                                   .special_tokens = options.special_tokens,
                                                   .limit_alphabet = options.limit_alphabet,
                                                   .continuing_subword_prefix = kPrefix,
                                                   .on_progress = options.on_progress})
      .tokens;
}

void save_wordpiece(const std::vector<std::string>& tokens, const WordPieceTrainerOptions& options,
                    const std::filesystem::path& directory) {
  std::string lines;
  for (const std::string& token : tokens) lines += token + "\n";
  write_file(directory / "vocab.txt", lines);
  write_json(directory / "tokenizer_config.json", tokenizer_config(options));
  const json model = {{"type", "WordPiece"},
                      {"unk_token", "[UNK]"},
                      {"continuing_subword_prefix", kPrefix},
                      {"max_input_chars_per_word", 100},
                      {"vocab", vocabulary_json(tokens)}};
  write_tokenizer_json(directory,
                       {{"added_tokens", added_tokens(options.special_tokens, tokens)},
                        {"normalizer", bert_normalizer_json(options.normalizer)},
                        {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
                        {"post_processor", post_processor(tokens)},
                        {"decoder", {{"type", "WordPiece"}, {"prefix", kPrefix}, {"cleanup", true}}},
                        {"model", model}});
}

}  // namespace zoo
