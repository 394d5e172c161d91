#include "tokenizer/files/gguf_vocabulary.h"

#include <map>
#include <sstream>

#include <nlohmann/json.hpp>

#include "data/base/atomic_file.h"
#include "data/base/error.h"
#include "data/base/json_file.h"
#include "tokenizer/sentencepiece/sentencepiece_file.h"
#include "tokenizer/text/split_patterns.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

[[noreturn]] void refuse(const std::string& what) {
  throw Error(
      "GGUF has no name for this tokenizer: ", what,
      "; expected byte-level BPE, or sentencepiece's BPE with byte fallback. Other formats of an export "
      "keep this one");
}

// Tokens by id.
struct Tokens {
  std::string model;
  std::vector<std::string> texts;
  std::vector<std::int32_t> types;
  std::vector<float> scores;        // of sentencepiece's
  std::vector<std::string> merges;  // of byte-level BPE
  std::string splitting = "default";
};

json part(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? json() : *found;
}

std::string type_of(const json& object) { return object.is_object() ? object.value("type", "") : "none"; }

std::vector<json> parts_of(const json& section, const char* key) {
  if (section.is_null()) return {};
  return type_of(section) == "Sequence" ? section.at(key).get<std::vector<json>>() : std::vector{section};
}

void add_vocabulary(const json& root, Tokens& tokens) {
  std::map<std::int64_t, std::string> by_id;
  for (const auto& [text, id] : root.at("model").at("vocab").items()) by_id[id] = text;
  std::map<std::int64_t, std::int32_t> types;
  for (const json& token : part(root, "added_tokens")) {
    const std::int64_t id = token.at("id");
    by_id[id] = token.at("content");
    types[id] = token.value("special", false) ? kControl : kUserDefined;
  }
  for (const auto& [id, text] : by_id) {
    while (tokens.texts.size() < static_cast<std::size_t>(id)) {
      tokens.texts.push_back("[PAD" + std::to_string(tokens.texts.size()) + "]");
      tokens.types.push_back(kUnused);
    }
    tokens.texts.push_back(text);
    tokens.types.push_back(types.contains(id) ? types.at(id) : kNormal);
  }
}

// Texts of the pairs: ["a", "b"], or "a b" in older files.
std::vector<std::pair<std::string, std::string>> merges_of(const json& model) {
  std::vector<std::pair<std::string, std::string>> merges;
  for (const json& merge : model.at("merges")) {
    if (merge.is_array()) {
      merges.emplace_back(merge.at(0), merge.at(1));
    } else {
      const std::string text = merge;
      merges.emplace_back(text.substr(0, text.find(' ')), text.substr(text.find(' ') + 1));
    }
  }
  return merges;
}

std::string splitting_of(const json& root) {
  std::vector<std::string> patterns;
  for (const json& cut : parts_of(part(root, "pre_tokenizer"), "pretokenizers")) {
    if (type_of(cut) == "ByteLevel") {
      if (cut.value("add_prefix_space", true)) refuse("it begins texts with a space");
      if (cut.value("use_regex", true)) patterns.emplace_back(expression_of(SplitPattern::gpt2));
    } else if (type_of(cut) == "Split" && cut.value("behavior", "") == "Isolated" &&
               !cut.value("invert", false)) {
      const std::string expression = cut.at("pattern").value("Regex", "");
      const auto known = split_pattern_of(expression);
      patterns.push_back(known ? std::string(expression_of(*known)) : expression);
    } else {
      refuse("it has a pre-tokenizer " + type_of(cut));
    }
  }
  const std::string normalizer = type_of(part(root, "normalizer"));
  if (normalizer != "none" && normalizer != "NFC") refuse("it has a normalizer " + normalizer);
  for (const GgufSplitting& splitting : gguf_splittings()) {
    const bool same = splitting.patterns == patterns && splitting.composes == (normalizer == "NFC") &&
                      splitting.keeps_whole_words == root.at("model").value("ignore_merges", false);
    if (same) return std::string(splitting.names.substr(1, splitting.names.find(' ', 1) - 1));
  }
  refuse("llama.cpp does not cut words as it does");
}

Tokens byte_level(const json& root) {
  Tokens tokens{.model = "gpt2"};
  tokens.splitting = splitting_of(root);
  add_vocabulary(root, tokens);
  for (const auto& [left, right] : merges_of(root.at("model"))) tokens.merges.push_back(left + " " + right);
  return tokens;
}

bool is_byte(const std::string& text) {
  return text.size() == 6 && text.starts_with("<0x") && text.ends_with('>');
}

// A piece's score comes from the first merge that forms it.
Tokens sentencepiece_bpe(const json& root) {
  Tokens tokens{.model = "llama"};
  add_vocabulary(root, tokens);
  const json model = root.at("model");
  std::map<std::string, float> scores;
  const auto merges = merges_of(model);
  for (std::size_t i = 0; i < merges.size(); ++i)
    scores.emplace(merges[i].first + merges[i].second, -static_cast<float>(i));
  for (std::size_t id = 0; id < tokens.texts.size(); ++id) {
    const std::string& text = tokens.texts[id];
    const auto found = scores.find(text);
    tokens.scores.push_back(found == scores.end() ? -static_cast<float>(merges.size()) : found->second);
    if (is_byte(text)) tokens.types[id] = kByte;
    if (text == model.value("unk_token", "")) tokens.types[id] = kUnknown;
  }
  return tokens;
}

Tokens from_json(const json& root) {
  const json model = root.at("model");
  if (model.value("type", "BPE") != "BPE" || !model.contains("merges"))
    refuse("its model is " + model.value("type", "of no type"));
  if (model.value("byte_fallback", false)) return sentencepiece_bpe(root);
  if (type_of(part(root, "decoder")) != "ByteLevel") refuse("its BPE reads characters, not bytes");
  return byte_level(root);
}

Tokens from_sentencepiece(const fs::path& path) {
  const SentencePieceFile file = SentencePieceFile::parse(read_model_file(path), path.string());
  if (file.is_unigram || !file.has_byte_fallback)
    refuse("its sentencepiece model is not BPE with byte fallback");
  Tokens tokens{.model = "llama"};
  for (const SentencePieceFile::Piece& piece : file.pieces) {
    tokens.texts.push_back(piece.text);
    tokens.types.push_back(static_cast<std::int32_t>(piece.type));
    tokens.scores.push_back(piece.score);
  }
  return tokens;
}

// vocab.json and merges.txt in tokenizer.json's format.
json json_of_classic_files(const Tokenizer& tokenizer, const fs::path& directory) {
  const fs::path settings = directory / "tokenizer_config.json";
  const json options = fs::exists(settings) ? read_json(settings) : json::object();
  json root{{"model",
             {{"type", "BPE"},
              {"vocab", read_json(directory / "vocab.json", kMostVocabulary)},
              {"merges", json::array()}}},
            {"pre_tokenizer",
             {{"type", "ByteLevel"}, {"add_prefix_space", options.value("add_prefix_space", false)}}},
            {"decoder", {{"type", "ByteLevel"}}},
            {"added_tokens", json::array()}};
  std::istringstream lines(read_model_file(directory / "merges.txt"));
  for (std::string line; std::getline(lines, line);)
    if (!line.empty() && !line.starts_with("#version")) root["model"]["merges"].push_back(line);
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id)
    if (tokenizer.decode({{id}}).empty())
      root["added_tokens"].push_back({{"id", id}, {"content", tokenizer.token_text(id)}, {"special", true}});
  return root;
}

Tokens tokens_of(const Tokenizer& tokenizer) {
  const AtomicDirectory scratch(fs::temp_directory_path() / "tzoo-tokenizer");
  tokenizer.save(scratch.path());
  for (const char* name : {"tokenizer.model", "spiece.model"})
    if (fs::exists(scratch.path() / name)) return from_sentencepiece(scratch.path() / name);
  const fs::path file = scratch.path() / "tokenizer.json";
  const bool is_classic = !fs::exists(file) && fs::exists(scratch.path() / "merges.txt");
  if (!fs::exists(file) && !is_classic) refuse("expected byte-level BPE or sentencepiece");
  try {
    return from_json(is_classic ? json_of_classic_files(tokenizer, scratch.path())
                                : read_json(file, kMostVocabulary));
  } catch (const json::exception&) {
    refuse("its tokenizer.json has an unexpected form");
  }
}

// True if encoding adds the tokens, and a space before the first word.
void add_template(const Tokenizer& tokenizer, const std::string& model, GgufMetadata& metadata) {
  const auto ids = tokenizer.encode("a", EncodeOptions{.with_offsets = false}).ids;
  const auto is = [&](SpecialToken role, TokenId id) { return tokenizer.special_id(role) == id; };
  metadata.emplace_back("tokenizer.ggml.add_bos_token", is(SpecialToken::bos, ids.front()));
  metadata.emplace_back("tokenizer.ggml.add_eos_token", ids.size() > 1 && is(SpecialToken::eos, ids.back()));
  if (model != "llama") return;
  const auto plain = tokenizer.encode("a");
  metadata.emplace_back("tokenizer.ggml.add_space_prefix",
                        !plain.empty() && tokenizer.token_text(plain.front()).starts_with(kGgufSpace));
}

}  // namespace

const std::vector<GgufSplitting>& gguf_splittings() {
  const auto known = [](SplitPattern pattern) { return std::string(expression_of(pattern)); };
  static const std::string gpt2 = known(SplitPattern::gpt2), cl100k = known(SplitPattern::cl100k);
  // Mistral's since NeMo: o200k's without contractions, and with single digits.
  static const std::string tekken =
      R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
      R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
      R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  static const std::vector<GgufSplitting> all{
      {" gpt-2 phi-2 olmo mpt roberta-bpe jina-v1-en jina-v2-es jina-v2-de jina-v2-code ", {gpt2}},
      {" llama-bpe llama3 llama-v3 falcon3 pixtral ", {cl100k}, true, true},
      {" dbrx smaug-bpe ", {cl100k}},
      {" qwen2 deepseek-r1-qwen megrez ", {known(SplitPattern::qwen2)}, false, false, true},
      {" stablelm2 ", {known(SplitPattern::qwen2)}},
      {" gpt-4o llama4 ", {known(SplitPattern::o200k)}},
      {" tekken ", {tekken}, true, true},
      {" smollm starcoder refact command-r codeshell ", {R"(\p{N})", gpt2}},
      {" default ", {R"([\p{P}\$\+<=>\^~\|]+)", gpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
  };
  return all;
}

GgufMetadata gguf_metadata_of(const Tokenizer& tokenizer, std::int64_t vocab_size) {
  Tokens tokens = tokens_of(tokenizer);
  while (tokens.texts.size() < static_cast<std::size_t>(vocab_size)) {
    tokens.texts.push_back("[PAD" + std::to_string(tokens.texts.size()) + "]");
    tokens.types.push_back(kUnused);
    if (!tokens.scores.empty()) tokens.scores.push_back(-10000);
  }
  GgufMetadata metadata{{"tokenizer.ggml.model", tokens.model},
                        {"tokenizer.ggml.pre", tokens.splitting},
                        {"tokenizer.ggml.tokens", tokens.texts},
                        {"tokenizer.ggml.token_type", tokens.types}};
  if (!tokens.scores.empty()) metadata.emplace_back("tokenizer.ggml.scores", tokens.scores);
  if (tokens.model == "gpt2") metadata.emplace_back("tokenizer.ggml.merges", tokens.merges);
  for (const auto& [key, role] : {std::pair("bos", SpecialToken::bos),
                                  {"eos", SpecialToken::eos},
                                  {"unknown", SpecialToken::unk},
                                  {"padding", SpecialToken::pad}}) {
    // A token that the class added has no row in the model.
    if (const auto id = tokenizer.special_id(role); id && *id < static_cast<TokenId>(tokens.texts.size()))
      metadata.emplace_back("tokenizer.ggml." + std::string(key) + "_token_id",
                            static_cast<std::uint32_t>(*id));
  }
  add_template(tokenizer, tokens.model, metadata);
  return metadata;
}

}  // namespace zoo
