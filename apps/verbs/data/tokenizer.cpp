#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <array>
#include <iostream>
#include <limits>

#include <nlohmann/json.hpp>

#include "apps/command/flags.h"
#include "apps/command/lines.h"
#include "apps/verbs/data/tokenizer_train.h"
#include "apps/verbs/verbs.h"
#include "data/base/error.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

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
  Flags flags(arguments.command,
              "Reads lines of text from standard input and prints the token ids of each line.");
  flags.add("model", model, "directory with a tokenizer, such as a checkpoint").placeholder("DIR").required();
  flags.add("json", json, "print each line's ids as a JSON array instead of numbers between spaces");
  flags.add("special_tokens", with_special_tokens,
            "add the special tokens that Hugging Face adds, such as [CLS] and [SEP]");
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
  Flags flags(
      arguments.command,
      "Reads JSON arrays of token ids from standard input, one per line, and prints the text of each.");
  flags.add("model", model, "directory with a tokenizer, such as a checkpoint").placeholder("DIR").required();
  flags.add("keep_special_tokens", keep, "print special tokens too");
  flags.example("echo '[47, 12, 305]' | tzoo tokenizer decode --model kjv-4000");
  if (!flags.parse(arguments)) return 0;

  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(model);
  for_each_line(std::cin, [&](const std::string& line, std::int64_t) {
    const std::vector<TokenId> ids = parse_ids(line);
    const std::string text = keep ? tokenizer->decode_with_special_tokens(ids) : tokenizer->decode(ids);
    // A model's ids may decode to bytes that are not valid UTF-8.
    std::cout << replace_invalid_utf8(text) << "\n";
  });
  return 0;
}

constexpr std::array kTokenizerActions{
    Verb{"train", "Actions", "train a tokenizer on a text", train_tokenizer},
    Verb{"encode", "Actions", "convert lines of text to token ids", encode},
    Verb{"decode", "Actions", "convert token ids to text", decode},
};

}  // namespace

int run_tokenizer(const Arguments& arguments) {
  return dispatch(arguments, "Trains tokenizers; converts text to token ids and back.", kTokenizerActions);
}

}  // namespace zoo
