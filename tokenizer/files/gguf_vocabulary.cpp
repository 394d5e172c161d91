#include "tokenizer/files/gguf_vocabulary.h"

#include <map>

#include <nlohmann/json.hpp>

#include "data/base/atomic_file.h"
#include "data/base/error.h"
#include "data/base/json.h"
#include "tokenizer/files/file_readers.h"
#include "tokenizer/files/tokenizer_class.h"
#include "tokenizer/files/tokenizer_json.h"
#include "tokenizer/pipeline/pipeline_tokenizer.h"
#include "tokenizer/sentencepiece/sentencepiece_file.h"
#include "tokenizer/text/byte_level.h"
#include "tokenizer/text/split_patterns.h"
#include "tokenizer/text/utf8.h"

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
  std::vector<std::string> texts, merges;  // merges of byte-level BPE
  std::vector<std::int32_t> types;
  std::vector<float> scores;  // of sentencepiece's
  std::string splitting = "default";

  // Unused tokens up to `count`, or fewer tokens.
  void resize(std::size_t count) {
    while (texts.size() < count) texts.push_back("[PAD" + std::to_string(texts.size()) + "]");
    texts.resize(count);
    types.resize(count, kUnused);
    if (!scores.empty()) scores.resize(count, -10000);
  }
  void set(std::size_t id, const std::string& text, GgufTokenType type) {
    resize(std::max(texts.size(), id + 1));
    texts[id] = text;
    types[id] = type;
  }
};

std::string type_of(const json& object) { return object.is_object() ? object.value("type", "") : "none"; }

void add_vocabulary(const json& root, Tokens& tokens) {
  for (const auto& [text, id] : root.at("model").at("vocab").items()) tokens.set(id, text, kNormal);
}

MergePairs merges_of(const json& model) {
  const fs::path file = "tokenizer.json";
  return read_merges(JsonSection(file, "model", model));
}

std::string splitting_of(const json& root) {
  std::vector<std::string> patterns;
  for (const json& cut : parts_of(root, "pre_tokenizer", "pretokenizers")) {
    const std::string type = type_of(cut), behavior = cut.value("behavior", "");
    if (type == "ByteLevel") {
      if (cut.value("add_prefix_space", true)) refuse("it begins texts with a space");
      if (cut.value("use_regex", true)) patterns.emplace_back(expression_of(SplitPattern::gpt2));
    } else if (type == "Digits") {
      patterns.emplace_back(cut.value("individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)");
    } else if (type == "Split") {
      const std::string expression = cut.at("pattern").value("Regex", "");
      const auto known = split_pattern_of(expression);
      // A known pattern leaves nothing between its matches.
      const bool keeps_matches =
          cut.value("invert", false) ? known && behavior == "Removed" : behavior == "Isolated";
      if (!keeps_matches) refuse("it cuts words as " + cut.dump());
      patterns.push_back(known ? std::string(expression_of(*known)) : expression);
    } else {
      refuse("it has a pre-tokenizer " + type);
    }
  }
  const std::string normalizer = type_of(root.value("normalizer", json()));
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
    if (fallback_byte(text)) tokens.types[id] = kByte;
  }
  return tokens;
}

Tokens from_json(const json& root) {
  const json model = root.at("model");
  if (model.value("type", "BPE") != "BPE" || !model.contains("merges"))
    refuse("its model is " + model.value("type", "of no type"));
  if (model.value("byte_fallback", false)) return sentencepiece_bpe(root);
  if (type_of(root.value("decoder", json())) != "ByteLevel") refuse("its BPE reads characters, not bytes");
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
json json_of_classic_files(const fs::path& directory) {
  return {{"model",
           {{"type", "BPE"},
            {"vocab", read_json(directory / "vocab.json", kMostVocabulary)},
            {"merges", read_merges_txt(directory / "merges.txt")}}}};
}

Tokens tokens_of(const Tokenizer& tokenizer, const json& config) {
  if (tokenizer.kind() == "char") refuse("it has a token for each character");
  const AtomicDirectory scratch(temporary_folder() / "tzoo-tokenizer");
  tokenizer.save(scratch.path());
  for (const char* name : {"tokenizer.model", "spiece.model"})
    if (fs::exists(scratch.path() / name)) return from_sentencepiece(scratch.path() / name);
  const fs::path file = scratch.path() / "tokenizer.json";
  const bool is_classic = !fs::exists(file) && fs::exists(scratch.path() / "merges.txt");
  if (!fs::exists(file) && !is_classic) refuse("it is " + std::string(tokenizer.kind()));
  try {
    TokenizerSettings settings = TokenizerSettings::read(scratch.path(), &config);
    for (const std::string& name : {settings.named_class, std::string("GPT2Tokenizer")})
      if (is_classic && settings.tokenizer_class.empty()) settings.use_class(name);
    json root = is_classic ? json_of_classic_files(scratch.path()) : read_json(file, kMostVocabulary);
    rebuild_as_class(settings, file, root);
    return from_json(root);
  } catch (const json::exception&) {
    refuse("its tokenizer.json has an unexpected form");
  }
}

std::vector<AddedToken> added_tokens_of(const Tokenizer& tokenizer) {
  const auto* pipeline = dynamic_cast<const PipelineTokenizer*>(&tokenizer);
  return pipeline == nullptr ? std::vector<AddedToken>() : pipeline->added_tokens();
}

// True if encoding adds the tokens, and a space before the first word.
void add_template(const Tokenizer& tokenizer, const std::string& model, GgufMetadata& metadata) {
  const auto ids = tokenizer.encode("a", EncodeOptions{.with_offsets = false}).ids;
  const auto is = [&](SpecialToken role, TokenId id) { return tokenizer.special_id(role) == id; };
  metadata.emplace_back("tokenizer.ggml.add_bos_token", !ids.empty() && is(SpecialToken::bos, ids.front()));
  metadata.emplace_back("tokenizer.ggml.add_eos_token", ids.size() > 1 && is(SpecialToken::eos, ids.back()));
  if (model != "llama") return;
  const auto plain = tokenizer.encode("a");
  metadata.emplace_back("tokenizer.ggml.add_space_prefix",
                        !plain.empty() && tokenizer.token_text(plain.front()).starts_with(kSpaceMark));
}

// Reads the metadata and compares ids. Throws Error if texts without added tokens have others.
std::vector<std::string> lost_in(const Tokenizer& tokenizer, const json& config, GgufMetadata metadata) {
  const AtomicDirectory scratch(temporary_folder() / "tzoo-tokenizer");
  metadata.emplace_back("general.architecture", config.value("model_type", ""));
  write_gguf(scratch.path() / "tokenizer.gguf", metadata, {});
  const auto read = read_gguf_tokenizer(scratch.path() / "tokenizer.gguf");
  const auto differs = [&](const std::string& text) {
    const EncodeOptions options{.with_offsets = false};
    return tokenizer.encode(text, options).ids != read->encode(text, options).ids;
  };
  for (const char* text :
       {"", "And God said, Let there be LIGHT: don't I'LL, it's 3.14 12345", "naïve e\u0301 ＡＢ ﬁ",
        "two  spaces,\ta tab.\n\n lines\r\n", "x=[1];//y {z}  ", "日本語 ✓ 🦙 ٣٤ Ⅳ"})
    if (differs(text)) refuse("it would give other ids to " + json(text).dump());
  std::vector<std::string> lost;
  if (differs(" a")) lost.emplace_back("ids of texts that begin with a space");
  for (const AddedToken& token : added_tokens_of(tokenizer)) {
    if (!differs("a " + token.content + " b") && !differs("a" + token.content + "b")) continue;
    const bool exists = std::ranges::any_of(
        read->encode(token.content), [&](TokenId id) { return read->token_text(id) == token.content; });
    // A model has no rows for tokens that were added without resizing it.
    lost.push_back((exists ? "rules of the token " : "the token ") + json(token.content).dump());
  }
  return lost;
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
      {" gpt-2 phi-2 olmo mpt roberta-bpe jina-v1-en a.x-4.0 mellum trillion granite-docling ", {gpt2}},
      {" llama-bpe llama3 llama-v3 falcon3 pixtral midm-2.0 ", {cl100k}, true, true},
      {" dbrx smaug-bpe ", {cl100k}},
      {" qwen2 deepseek-r1-qwen megrez ", {known(SplitPattern::qwen2)}, false, false, true},
      {" stablelm2 ", {known(SplitPattern::qwen2)}},
      {" gpt-4o llama4 ", {known(SplitPattern::o200k)}},
      {" tekken ", {tekken}, true, true},
      {" smollm starcoder refact command-r codeshell exaone minerva-7b mellum2 ", {R"(\p{N})", gpt2}},
      {" deepseek-coder ",
       {"[\r\n]", R"(\s?\p{L}+)", R"(\s?\p{P}+)", "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", R"(\p{N})"}},
      {" default ", {R"([\p{P}\$\+<=>\^~\|]+)", gpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
  };
  return all;
}

GgufTokenizer gguf_tokenizer_of(const Tokenizer& tokenizer, const json& config, std::int64_t vocab_size) {
  Tokens tokens = tokens_of(tokenizer, config);
  for (const AddedToken& token : added_tokens_of(tokenizer))
    tokens.set(static_cast<std::size_t>(token.id), token.content, token.special ? kControl : kUserDefined);
  const auto count = static_cast<std::size_t>(vocab_size);
  for (std::size_t id = count; id < tokens.texts.size(); ++id)
    if (tokens.types[id] == kNormal)
      refuse("the model has " + std::to_string(count) + " rows, and none for its token " +
             json(tokens.texts[id]).dump());
  tokens.resize(count);  // a token that the class added has no row in the model
  GgufMetadata metadata{{"tokenizer.ggml.model", tokens.model},
                        {"tokenizer.ggml.pre", tokens.splitting},
                        {"tokenizer.ggml.tokens", tokens.texts}};
  for (const auto& [role, key, gguf_key] : kRoleKeys) {
    const auto id = tokenizer.special_id(role);
    const bool is_of_bert =
        role == SpecialToken::sep || role == SpecialToken::cls || role == SpecialToken::mask;
    if (is_of_bert || !id || *id >= vocab_size) continue;
    metadata.emplace_back(gguf_key, static_cast<std::uint32_t>(*id));
    if (role == SpecialToken::unk && tokens.model == "llama")
      tokens.types[static_cast<std::size_t>(*id)] = kUnknown;
  }
  metadata.emplace_back("tokenizer.ggml.token_type", tokens.types);
  if (!tokens.scores.empty()) metadata.emplace_back("tokenizer.ggml.scores", tokens.scores);
  if (tokens.model == "gpt2") metadata.emplace_back("tokenizer.ggml.merges", tokens.merges);
  add_template(tokenizer, tokens.model, metadata);
  return {metadata, lost_in(tokenizer, config, metadata)};
}

}  // namespace zoo
