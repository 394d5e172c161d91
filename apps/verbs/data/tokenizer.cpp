#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iostream>
#include <limits>

#include <nlohmann/json.hpp>

#include "apps/command/flags.h"
#include "apps/command/standard_streams.h"
#include "apps/verbs/verbs.h"
#include "data/base/error.h"
#include "data/base/json.h"
#include "data/base/lines.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

std::string ids_text(const TokenIds& ids, bool json) {
  std::string text;
  for (const TokenId id : ids) text += (text.empty() ? "" : json ? "," : " ") + std::to_string(id);
  return (json ? "[" + text + "]" : text) + "\n";
}

// The character in which each byte of a text lies, and the number of characters after its end.
std::vector<std::size_t> characters_of_bytes(std::string_view text) {
  std::vector<std::size_t> characters;
  std::size_t count = 0;
  for (const char byte : text) {
    count += continues_character(byte) ? 0 : 1;
    characters.push_back(count - 1);
  }
  characters.push_back(count);
  return characters;
}

// One object a line, with the keys and units of an Encoding in Python's `tokenizers`.
std::string encoding_text(const Tokenizer& tokenizer, std::string_view line, const Encoding& encoding) {
  if (encoding.offsets.size() != encoding.size())
    throw UsageError("--offsets: a tokenizer of kind ", tokenizer.kind(), " does not know them");
  const std::vector<std::size_t> characters = characters_of_bytes(line);
  nlohmann::ordered_json tokens = nlohmann::ordered_json::array(), offsets = tokens, words = tokens,
                         mask = tokens;
  for (std::size_t i = 0; i < encoding.size(); ++i) {
    const ByteRange bytes = encoding.offsets[i];
    // A token that ends inside a character covers it.
    const std::size_t end = bytes.begin < bytes.end ? characters[bytes.end - 1] + 1 : characters[bytes.begin];
    tokens.push_back(tokenizer.token_text(encoding.ids[i]));
    offsets.push_back({characters[bytes.begin], end});
    words.push_back(encoding.words[i] < 0 ? nlohmann::ordered_json()
                                          : nlohmann::ordered_json(encoding.words[i]));
    mask.push_back(encoding.texts[i] < 0 ? 1 : 0);
  }
  const nlohmann::ordered_json all{{"ids", encoding.ids},
                                   {"tokens", tokens},
                                   {"offsets", offsets},
                                   {"word_ids", words},
                                   {"special_tokens_mask", mask}};
  return json_text(all) + "\n";
}

// For each line of standard input, of which only '\n', its end, is no part. Flushes std::cout before it
// waits, so that a program can wait for each answer.
void for_each_line(const std::function<void(const std::string& line)>& use) {
  std::istream& input = standard_input();
  std::string line;
  for (std::int64_t number = 1; std::getline(input, line); ++number) {
    try {
      use(line);
    } catch (const Error& error) {
      throw Error("line ", number, " of the input: ", error.what());
    }
    if (input.rdbuf()->in_avail() <= 0) std::cout.flush();
  }
  if (input.bad()) throw Error("cannot read standard input");
}

int encode(const Arguments& arguments) {
  std::filesystem::path model;
  std::vector<std::string> texts;
  bool json = false, with_special_tokens = true, with_offsets = false;
  Flags flags(arguments.command,
              "Reads lines of text from standard input and prints the token ids of each line.");
  flags.add("model", model, "directory with a tokenizer, such as a checkpoint",
            {.placeholder = "DIR", .leads = true, .required = true});
  flags.add("text", texts, "a text, instead of those of standard input");
  flags.add("json", json, "print each line's ids as a JSON array instead of numbers between spaces");
  flags.add(
      "offsets", with_offsets,
      "with --json: print an object with ids, tokens, offsets (in characters of the line), word_ids and "
      "special_tokens_mask");
  flags.add("special_tokens", with_special_tokens,
            "add the special tokens that Hugging Face adds, such as [CLS] and [SEP]");
  flags.example("echo 'In the beginning' | tzoo tokenizer encode --model kjv-4000 --json");
  if (!flags.parse(arguments)) return 0;
  if (with_offsets && !json) throw UsageError("--offsets needs --json");

  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(model);
  const EncodeOptions options{.add_special_tokens = with_special_tokens, .with_offsets = with_offsets};
  const auto print = [&](const std::string& text) {
    const Encoding encoding = tokenizer->encode(text, options);
    std::cout << (with_offsets ? encoding_text(*tokenizer, text, encoding) : ids_text(encoding.ids, json));
  };
  for (const std::string& text : texts) print(text);
  if (texts.empty()) for_each_line(print);
  return 0;
}

TokenIds parse_ids(const std::string& line) {
  // As `tzoo tokenizer encode` prints them: a JSON array, or numbers between spaces.
  const bool bare = line.find_first_not_of("0123456789 \t\r") == std::string::npos;
  const nlohmann::json values = parse_json(bare ? "[" + joined(split_words(line)) + "]" : line);
  const auto is_id = [](const nlohmann::json& value) {
    return value.is_number_integer() && value >= 0 && value <= std::numeric_limits<TokenId>::max();
  };
  if (!values.is_array() || !std::all_of(values.begin(), values.end(), is_id))
    throw Error("expected token ids, such as [3, 1, 2] or 3 1 2, got '", excerpt(line, 60), "'");
  return values.get<TokenIds>();
}

int decode(const Arguments& arguments) {
  std::filesystem::path model;
  bool keep = false;
  Flags flags(arguments.command,
              "Reads token ids from standard input, a JSON array or numbers in each line, and prints the "
              "text of each.");
  flags.add("model", model, "directory with a tokenizer, such as a checkpoint",
            {.placeholder = "DIR", .leads = true, .required = true});
  flags.add("keep_special_tokens", keep, "print special tokens too");
  flags.example("echo '[47, 12, 305]' | tzoo tokenizer decode --model kjv-4000");
  if (!flags.parse(arguments)) return 0;

  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(model);
  for_each_line([&](const std::string& line) {
    const TokenIds ids = parse_ids(line);
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
