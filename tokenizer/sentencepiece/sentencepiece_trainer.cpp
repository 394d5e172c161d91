#include <algorithm>
#include <limits>
#include <type_traits>
#include <unordered_map>

#include <sentencepiece_trainer.h>

#include "data/base/error.h"
#include "data/base/lines.h"
#include "tokenizer/sentencepiece/sentencepiece_library.h"
#include "tokenizer/sentencepiece/sentencepiece_tokenizer.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

using Arguments = std::unordered_map<std::string, std::string>;

// The library's default, which drops longer lines; here they are split, so that all text is learnt.
constexpr std::size_t kMaxLine = 4192;

// The library's mark for unknown characters, U+2585. It drops lines with it; here they are split there.
constexpr std::string_view kReserved = "\xE2\x96\x85";

// The suffix array of a larger text needs 64-bit indices.
constexpr std::size_t kExtremelyLarge = std::numeric_limits<std::int32_t>::max() / 2;

// The size of a line's first part: all of it if it fits, else up to the last space, else character.
std::size_t cut_at(std::string_view line) {
  if (line.size() <= kMaxLine) return line.size();
  const std::size_t space = line.rfind(' ', kMaxLine);
  if (space != line.npos && space > 0) return space;
  return character_begin(line, kMaxLine + 1);
}

void add_line(std::string_view line, std::vector<std::string_view>& lines) {
  while (!line.empty()) {
    const std::size_t reserved = line.find(kReserved);
    const std::size_t end = cut_at(line.substr(0, reserved));
    if (end > 0) lines.push_back(line.substr(0, end));
    line.remove_prefix(end == reserved ? end + kReserved.size() : end);
  }
}

std::vector<std::string_view> training_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (const Line& line : every_line(text)) add_line(line.text, lines);
  return lines;
}

class Lines final : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(const std::vector<std::string_view>& lines) : lines_(lines) {}
  bool done() const override { return at_ >= lines_.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return value_ = lines_[at_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::vector<std::string_view>& lines_;
  std::size_t at_ = 0;
  mutable std::string value_;
};

std::string run(const Arguments& arguments, const std::vector<std::string_view>& lines) {
  silence_sentencepiece();
  Lines iterator(lines);
  std::string model;
  sentencepiece::util::Status status;
  try {
    status = sentencepiece::SentencePieceTrainer::Train(arguments, &iterator, &model);
  } catch (const std::exception& error) {
    throw Error("cannot train a sentencepiece model: ", error.what());
  }
  require_ok(status, "cannot train a sentencepiece model");
  return model;
}

// The library takes a list as comma-separated values.
std::string join_quoted(const std::vector<std::string>& symbols) {
  std::string joined;
  for (const std::string& symbol : symbols) {
    require_utf8(symbol, "a user-defined symbol");
    if (symbol.empty() || symbol.find('\0') != symbol.npos)
      throw Error("a user-defined symbol must not be empty or hold a zero byte");
    joined += joined.empty() ? "\"" : ",\"";
    for (const char c : symbol) joined += c == '"' ? std::string("\"\"") : std::string(1, c);
    joined += '"';
  }
  return joined;
}

template <class Number>
void require_range(const char* name, Number value, std::type_identity_t<Number> low,
                   std::type_identity_t<Number> high) {
  const bool inside = value >= low && value <= high;
  if (!inside) throw Error("sentencepiece ", name, " ", value, ": expected ", low, " to ", high);
}

Arguments arguments_of(const SentencePieceOptions& options) {
  require_range("vocab_size", options.vocab_size, 1, 1 << 24);
  require_range("character_coverage", options.character_coverage, 0.98, 1);
  require_range("num_threads", options.num_threads, 1, 128);
  const auto flag = [](bool value) { return value ? "true" : "false"; };
  Arguments arguments = {
      {"model_type", options.model == SentencePieceOptions::Model::bpe ? "bpe" : "unigram"},
      {"vocab_size", std::to_string(options.vocab_size)},
      {"character_coverage", std::to_string(options.character_coverage)},
      {"normalization_rule_name", options.normalization},
      {"remove_extra_whitespaces", flag(options.remove_extra_whitespaces)},
      {"byte_fallback", flag(options.byte_fallback)},
      {"max_sentence_length", std::to_string(kMaxLine)},
      {"num_threads", std::to_string(options.num_threads)},
      {"pad_id", "0"},
      {"eos_id", "1"},
      {"unk_id", "2"},
      {"bos_id", "-1"},
  };
  if (!options.user_defined_symbols.empty())
    arguments["user_defined_symbols"] = join_quoted(options.user_defined_symbols);
  return arguments;
}

std::size_t num_reserved_ids(const SentencePieceOptions& options) {
  constexpr std::size_t kSpecial = 3;
  return kSpecial + options.user_defined_symbols.size() + (options.byte_fallback ? 256 : 0);
}

// The library ends the process if nothing remains after normalization. Its character model has no such check,
// so train one to find out. A letter or digit always remains.
void require_characters(const std::vector<std::string_view>& lines, const SentencePieceOptions& options) {
  const auto holds_letter = [](std::string_view line) {
    return std::ranges::any_of(line, [](char c) { return is_ascii_letter(c) || is_ascii_digit(c); });
  };
  const bool sure = options.user_defined_symbols.empty() && std::ranges::any_of(lines, holds_letter);
  if (sure) return;
  bool has_characters = false;
  if (!lines.empty()) {
    Arguments arguments = arguments_of(options);
    arguments["model_type"] = "char";
    arguments["vocab_size"] = std::to_string(0x110000 + num_reserved_ids(options));
    sentencepiece::SentencePieceProcessor characters;
    const auto status = characters.LoadFromSerializedProto(run(arguments, lines));
    has_characters =
        status.ok() && static_cast<std::size_t>(characters.GetPieceSize()) > num_reserved_ids(options);
  }
  if (!has_characters)
    throw Error("cannot train a sentencepiece model: the training text has no characters to learn");
}

}  // namespace

std::string train_sentencepiece(std::string_view text, const SentencePieceOptions& options) {
  Arguments arguments = arguments_of(options);
  if (text.size() > kExtremelyLarge) arguments["train_extremely_large_corpus"] = "true";
  const std::vector<std::string_view> lines = training_lines(text);
  require_characters(lines, options);
  return run(arguments, lines);
}

}  // namespace zoo
