#include <algorithm>
#include <array>
#include <iostream>
#include <limits>

#include <nlohmann/json.hpp>

#include "apps/command/flags.h"
#include "apps/command/lines.h"
#include "apps/verbs.h"
#include "data/base/atomic_file.h"
#include "data/base/json_file.h"
#include "data/corpora.h"
#include "data/text_file.h"
#include "tokenizer/byte_tokenizer.h"
#include "tokenizer/char_tokenizer.h"
#include "tokenizer/sentencepiece_tokenizer.h"
#include "tokenizer/utf8.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

struct TrainOptions {
  std::string kind, input, model_type = "unigram";
  std::int64_t vocab_size = 8000;
  fs::path out_dir;
};

std::unique_ptr<Tokenizer> learn(const TrainOptions& options) {
  if (options.kind == "byte") return std::make_unique<ByteTokenizer>();
  const std::string text = read_text(resolve_dataset(options.input));
  if (options.kind == "char") return std::make_unique<CharTokenizer>(CharTokenizer::train(text));
  SentencePieceOptions learning;
  learning.vocab_size = options.vocab_size;
  learning.model =
      options.model_type == "bpe" ? SentencePieceOptions::Model::bpe : SentencePieceOptions::Model::unigram;
  return std::make_unique<SentencePieceTokenizer>(SentencePieceTokenizer::train(text, learning));
}

// A directory with files of two kinds would later be read as one of them, whichever was meant.
void refuse_another_kind(const fs::path& directory, std::string_view kind) {
  if (!has_tokenizer(directory)) return;
  const std::string present(load_tokenizer(directory)->kind());
  if (present != kind) {
    throw Error("--out_dir: ", directory, " holds a tokenizer of kind ", present,
                "; choose another folder for ", kind);
  }
}

int train(const Arguments& arguments) {
  TrainOptions options;
  Flags flags(arguments.command,
              "Learns a vocabulary from a text and writes it in files that Hugging Face reads too.");
  flags.group("Text");
  flags.add("input", options.input, "a text file, or the name of a corpus ('tzoo data list')")
      .placeholder("FILE|CORPUS");
  flags.add("out_dir", options.out_dir, "folder for the tokenizer's files").placeholder("DIR").required();
  flags.group("Vocabulary");
  flags.choice("kind", options.kind, {"char", "byte", "sentencepiece"}, "what a token is; byte needs no text")
      .required();
  flags.add("vocab_size", options.vocab_size, "tokens, the special ones included; sentencepiece only")
      .at_least(1);
  flags.choice("model_type", options.model_type, {"unigram", "bpe"}, "how sentencepiece splits words");
  flags.example("tzoo tokenizer train --kind sentencepiece --input kjv --vocab_size 4000 --out_dir kjv-4000");
  if (!flags.parse(arguments)) return 0;
  for (const char* name : {"vocab_size", "model_type"}) {
    if (flags.given(name) && options.kind != "sentencepiece") {
      throw UsageError("--", name, ": only --kind sentencepiece has it, not ", options.kind);
    }
  }
  if (options.input.empty() && options.kind != "byte")
    throw UsageError("missing flag '--input': the text to learn from");

  refuse_another_kind(options.out_dir, options.kind);
  const std::unique_ptr<Tokenizer> tokenizer = learn(options);
  make_directories(options.out_dir);
  tokenizer->save(options.out_dir);
  std::cout << tokenizer->kind() << " tokenizer of " << tokenizer->vocab_size() << " tokens in "
            << options.out_dir.string() << "\n";
  return 0;
}

std::string ids_text(const std::vector<TokenId>& ids, bool json) {
  std::string text = json ? "[" : "";
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) text += json ? ',' : ' ';
    text += std::to_string(ids[i]);
  }
  return text + (json ? "]\n" : "\n");
}

int encode(const Arguments& arguments) {
  fs::path model;
  bool json = false, with_special_tokens = true;
  Flags flags(arguments.command, "Reads lines of text on standard input and prints the token ids of each.");
  flags.add("model", model, "folder with a tokenizer, such as a checkpoint's").placeholder("DIR").required();
  flags.add("json", json, "a JSON array a line, instead of ids with spaces between them");
  flags.add("special_tokens", with_special_tokens, "add the special tokens that Hugging Face adds");
  flags.example("echo 'In the beginning' | tzoo tokenizer encode --model kjv-4000 --json");
  if (!flags.parse(arguments)) return 0;

  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(model);
  const EncodeOptions options{.add_special_tokens = with_special_tokens, .with_offsets = false};
  for_each_line(std::cin, [&](const std::string& line, std::int64_t) {
    std::cout << ids_text(tokenizer->encode(line, options).ids, json);
  });
  return 0;
}

std::vector<TokenId> parse_ids(const std::string& line) {
  const nlohmann::json values = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  const auto is_id = [](const nlohmann::json& value) {
    return value.is_number_integer() && value >= 0 && value <= std::numeric_limits<TokenId>::max();
  };
  if (!values.is_array() || !std::all_of(values.begin(), values.end(), is_id)) {
    throw Error("expected a JSON array of token ids, got '", line.substr(0, 60),
                line.size() > 60 ? "…'" : "'");
  }
  return values.get<std::vector<TokenId>>();
}

int decode(const Arguments& arguments) {
  fs::path model;
  bool keep = false;
  Flags flags(arguments.command,
              "Reads a JSON array of token ids a line on standard input and prints each as text.");
  flags.add("model", model, "folder with a tokenizer, such as a checkpoint's").placeholder("DIR").required();
  flags.add("keep_special_tokens", keep, "print special tokens too");
  flags.example("echo '[47, 12, 305]' | tzoo tokenizer decode --model kjv-4000");
  if (!flags.parse(arguments)) return 0;

  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(model);
  for_each_line(std::cin, [&](const std::string& line, std::int64_t) {
    const std::vector<TokenId> ids = parse_ids(line);
    const std::string text = keep ? tokenizer->decode_with_special_tokens(ids) : tokenizer->decode(ids);
    // Ids that a model made up may stand for bytes that are no text.
    std::cout << replace_invalid_utf8(text) << "\n";
  });
  return 0;
}

constexpr std::array kActions{
    Verb{"train", "Actions", "learn a vocabulary from a text", train},
    Verb{"encode", "Actions", "lines of text to token ids", encode},
    Verb{"decode", "Actions", "token ids to text", decode},
};

}  // namespace

int run_tokenizer(const Arguments& arguments) {
  return dispatch(arguments, "Text to token ids and back; learns vocabularies.", kActions);
}

}  // namespace zoo
