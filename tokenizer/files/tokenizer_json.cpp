#include "tokenizer/files/tokenizer_json.h"

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "data/base/json.h"
#include "tokenizer/files/tokenizer_class.h"
#include "tokenizer/pipeline/char_and_byte_tokenizers.h"
#include "tokenizer/pipeline/pipeline_tokenizer.h"
#include "tokenizer/pipeline/tokenizer_json_writer.h"
#include "tokenizer/text/byte_level.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The vocabulary as pieces[id]. Throws Error unless the ids are 0 to n - 1 without repeats.
std::vector<std::string> read_texts_by_id(const JsonSection& model) {
  const json& vocabulary = model.require("vocab", JsonType::object);
  if (vocabulary.empty()) model.fail("vocab", "is empty");
  std::vector<std::string> pieces(vocabulary.size());
  std::vector<bool> taken(pieces.size());
  for (const auto& [piece, id] : vocabulary.items()) {
    const std::string key = "vocab[" + json(piece).dump() + "]";
    const bool in_range = id.is_number_unsigned() && id.get<std::uint64_t>() < pieces.size();
    if (!in_range)
      model.fail(key, "is ", id.is_structured() ? id.type_name() : id.dump(),
                 ": expected an integer from 0 to ", pieces.size() - 1, ", as there are ", pieces.size(),
                 " entries");
    const auto place = id.get<std::size_t>();
    if (taken[place])
      model.fail(key, "is ", id.dump(), ", which is also the id of ", json(pieces[place]).dump());
    pieces[place] = piece;
    taken[place] = true;
  }
  return pieces;
}

bool is_empty_text(const JsonSection& section, const char* key) {
  const json* value = section.find(key);
  return value == nullptr || *value == "";
}

// BPE without merges, where no other part changes the text or adds ids.
bool is_plain_vocabulary(const JsonSection& root) {
  if (kind_of_model(root) != "bpe") return false;
  const JsonSection model = root.section("model");
  const json* dropout = model.find("dropout");
  const bool has_added =
      root.find("added_tokens") != nullptr && !root.require("added_tokens", JsonType::array).empty();
  return model.require("merges", JsonType::array).empty() && !model.flag("byte_fallback", false) &&
         is_empty_text(model, "unk_token") && is_empty_text(model, "continuing_subword_prefix") &&
         is_empty_text(model, "end_of_word_suffix") && (dropout == nullptr || *dropout == 0) && !has_added &&
         root.find("normalizer") == nullptr;
}

bool is_char(const JsonSection& root) {
  return is_plain_vocabulary(root) && root.type_of("pre_tokenizer") == "none" &&
         root.type_of("post_processor") == "none" && root.type_of("decoder") == "Fuse";
}

std::unique_ptr<Tokenizer> read_char(const JsonSection& root) {
  const JsonSection model = root.section("model");
  std::vector<char32_t> characters;
  for (const std::string& piece : read_texts_by_id(model)) {
    std::size_t end = 0;
    const char32_t c = piece.empty() ? 0 : next_code_point(piece, end);
    if (piece.empty() || end != piece.size())
      model.fail("vocab[" + json(piece).dump() + "]",
                 "is not one character, and there are no merges to build it");
    characters.push_back(c);
  }
  return std::make_unique<CharTokenizer>(std::move(characters));
}

bool is_byte(const JsonSection& root) {
  if (!is_plain_vocabulary(root) || root.type_of("pre_tokenizer") != "ByteLevel") return false;
  const JsonSection pre_tokenizer = root.section("pre_tokenizer");
  pre_tokenizer.flag("use_regex", true);
  // A ByteLevel post-processor only moves offsets, and without merges the splits of use_regex have no effect.
  const std::string post_processor = root.type_of("post_processor");
  return (post_processor == "none" || post_processor == "ByteLevel") &&
         root.type_of("decoder") == "ByteLevel" && !pre_tokenizer.flag("add_prefix_space", true) &&
         root.section("model").require("vocab", JsonType::object) == vocabulary_json(byte_level_alphabet());
}

void read_added_tokens(const JsonSection& root, Pipeline& pipeline) {
  if (root.find("added_tokens") == nullptr) return;
  TokenRegistry registry(pipeline);
  for (const JsonSection& section : root.sections("added_tokens")) {
    AddedToken token = read_added_token(section);
    if (!token.content.empty()) registry.add(std::move(token));
  }
}

// Removes the rules of special tokens that files set (lstrip, single_word, …), as Qwen2Tokenizer does.
void reset_special_tokens(const TokenizerSettings& settings, Pipeline& pipeline) {
  TokenRegistry registry(pipeline);
  const auto reset = [&](const AddedToken& token) {
    if (!token.content.empty() && registry.find(token.content)) registry.add(special_token(token.content));
  };
  for (const auto& [role, token] : settings.roles) reset(token);
  for (const AddedToken& token : settings.additional_special_tokens) reset(token);
}

// The file's pipeline as its class and the settings change it; `content` gets the parts of the class.
Pipeline applied_pipeline(const fs::path& path, json& content, TokenizerSettings& settings) {
  const JsonSection root(path, "", content);
  if (!settings.lists_added_tokens && root.find("added_tokens") != nullptr) {
    // The file's own tokens replace those that added_tokens.json has for their ids.
    for (const JsonSection& section : root.sections("added_tokens")) {
      const AddedToken token = read_added_token(section);
      // Also where a later token has the same id.
      const auto mask = settings.roles.find(SpecialToken::mask);
      if (mask != settings.roles.end() && mask->second.content == token.content)
        settings.mask_has_rules = true;
      settings.added_tokens_decoder[static_cast<TokenId>(section.count("id", 0))] = token;
    }
  }
  settings.add_bos_token = settings.add_eos_token = std::nullopt;  // the file's template decides
  const bool is_rebuilt = rebuild_as_class(settings, path, content);
  Pipeline pipeline = read_pipeline(root);
  if (is_rebuilt) add_class_tokens(settings);
  apply_settings(settings, pipeline);
  const bool keeps_template =
      settings.tokenizer_class == "AlbertTokenizer" && root.find("post_processor") != nullptr;
  if (is_rebuilt && !keeps_template) set_class_template(settings, pipeline, path);
  if (is_rebuilt && settings.tokenizer_class == "Qwen2Tokenizer") reset_special_tokens(settings, pipeline);
  return pipeline;
}

// The direction in "truncation" or "padding", which counts if tokenizer_config.json has none.
bool has_left_direction(const JsonSection& root, const char* section) {
  return root.find(section) != nullptr && root.section(section).text("direction", "Right") == "Left";
}

std::unique_ptr<Tokenizer> read_any(const fs::path& path, json content, TokenizerSettings settings) {
  const JsonSection root(path, "", content);
  if (root.find("version") != nullptr) {
    const json& version = root.require("version", JsonType::string);
    if (version != "1.0") root.fail("version", "is ", version.dump(), ": expected \"1.0\"");
  }
  if (is_char(root)) return read_char(root);
  if (is_byte(root)) return std::make_unique<ByteTokenizer>();
  Pipeline pipeline = applied_pipeline(path, content, settings);
  if (root.find("padding") != nullptr)
    if (const auto pad = TokenRegistry(pipeline).find(root.section("padding").text("pad_token", "[PAD]")))
      pipeline.roles.try_emplace(SpecialToken::pad, *pad);
  auto tokenizer = tokenizer_of(std::move(pipeline), settings, path);
  tokenizer->set_limits({.truncates_left = has_left_direction(root, "truncation"),
                         .pads_left = has_left_direction(root, "padding")});
  return tokenizer;
}

json pieces_json(const std::vector<EncodingTemplate::Piece>& pieces) {
  using Kind = EncodingTemplate::Piece::Kind;
  json list = json::array();
  for (const EncodingTemplate::Piece& piece : pieces) {
    json& one = list.emplace_back(json{{"type", piece.type_id}});
    if (piece.kind == Kind::special) one["ids"] = piece.ids;
    else one["text"] = piece.kind == Kind::first_text ? 0 : 1;
  }
  return list;
}

}  // namespace

Pipeline read_pipeline(const JsonSection& root) {
  Pipeline pipeline;
  pipeline.kind = kind_of_model(root);
  read_normalizer(root, pipeline);
  read_pre_tokenizer(root, pipeline);
  read_model(root, pipeline);
  read_added_tokens(root, pipeline);
  read_post_processor(root, pipeline);
  read_decoder(root, pipeline);
  return pipeline;
}

std::unique_ptr<Tokenizer> read_tokenizer_json(const fs::path& path, TokenizerSettings settings) {
  try {
    return read_any(path, read_json(path, kMostVocabulary), std::move(settings));
  } catch (const json::exception&) {
    throw Error(path, ": a value is of an unexpected kind");
  }
}

json applied_tokenizer_json(const fs::path& path, TokenizerSettings settings) {
  json content = read_json(path, kMostVocabulary);
  const JsonSection root(path, "", content);
  Pipeline pipeline;
  if (!is_char(root) && !is_byte(root)) pipeline = applied_pipeline(path, content, settings);
  content.erase("post_processor");
  content["templates"] = {{"single", pieces_json(pipeline.encoding_template.single)},
                          {"pair", pieces_json(pipeline.encoding_template.pair)}};
  content["cleans_up_spaces"] = pipeline.cleans_up_spaces;
  content["added_tokens"] = json::array();
  for (const AddedToken& token : pipeline.added_tokens)
    content["added_tokens"].push_back(added_token_json(token));
  return content;
}

json parts_of(const json& root, const char* key, const char* parts) {
  const json section = root.value(key, json());
  if (section.is_null()) return json::array();
  const bool is_sequence = section.is_object() && section.value("type", json()) == "Sequence";
  return is_sequence ? section.value(parts, json::array()) : json::array({section});
}

std::vector<JsonSection> all_parts(const JsonSection& section, const char* parts) {
  if (section.text("type") != "Sequence") return {section};
  std::vector<JsonSection> all;
  for (const JsonSection& part : section.sections(parts))
    for (const JsonSection& inner : all_parts(part, parts)) all.push_back(inner);
  return all;
}

void fail_unknown_type(const JsonSection& section, std::string_view what, std::string_view known) {
  section.fail("type", "is ", section.text("type"), ", a ", what, " that is not supported: expected one of ",
               known);
}

TextPattern read_pattern(const JsonSection& section, const char* key) {
  // A plain string in some older files.
  if (const nlohmann::json* plain = section.find(key); plain != nullptr && plain->is_string())
    return TextPattern::literal(plain->get<std::string>());
  const JsonSection pattern = section.section(key);
  if (pattern.find("String") != nullptr) return TextPattern::literal(pattern.text("String"));
  const std::string expression = pattern.text("Regex");
  try {
    return TextPattern::regex(expression);
  } catch (const Error& error) {
    pattern.fail("Regex", "is ", error.what());
  }
}

AddedToken read_added_token(const JsonSection& section) {
  AddedToken token;
  token.content = section.text("content");
  token.special = section.flag("special", false);
  token.single_word = section.flag("single_word", false);
  token.lstrip = section.flag("lstrip", false);
  token.rstrip = section.flag("rstrip", false);
  token.normalized = section.flag("normalized", !token.special);
  return token;
}

}  // namespace zoo
