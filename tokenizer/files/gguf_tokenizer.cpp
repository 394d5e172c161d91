#include <algorithm>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "data/base/base64.h"
#include "data/base/gguf_file.h"
#include "data/base/json.h"
#include "data/base/sizes.h"
#include "tokenizer/files/file_readers.h"
#include "tokenizer/files/gguf_vocabulary.h"
#include "tokenizer/files/tokenizer_json.h"
#include "tokenizer/pipeline/pipeline_tokenizer.h"
#include "tokenizer/pipeline/tokenizer_json_writer.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

using enum GgufTokenType;

using nlohmann::json;

constexpr const char* kPrefix = "tokenizer.ggml.";

// Default ids of a file without the key, by model; -1: none.
struct RoleId {
  const char *key, *role;  // after the prefix; in tokenizer_config.json
  std::int64_t llama, bert, t5;
};
constexpr RoleId kRoles[]{
    {"bos_token_id", "bos_token", 1, 101, -1},    {"eos_token_id", "eos_token", 2, -1, 1},
    {"unknown_token_id", "unk_token", 0, 100, 2}, {"seperator_token_id", "sep_token", -1, 102, -1},
    {"padding_token_id", "pad_token", -1, 0, 0},  {"mask_token_id", "mask_token", -1, 103, -1}};

constexpr const char* kKnown[]{"model",
                               "pre",
                               "tokens",
                               "token_type",
                               "scores",
                               "merges",
                               "add_bos_token",
                               "add_eos_token",
                               "add_sep_token",
                               "add_space_prefix",
                               "remove_extra_whitespaces",
                               "precompiled_charsmap",
                               "token_type_count",
                               "normalizer.lowercase",
                               "normalizer.strip_accents"};

// Makes the tokenizer.json.
class GgufVocabulary {
 public:
  explicit GgufVocabulary(const GgufFile& file)
      : section_(file.path(), "", file.metadata()), model_(section_.text("tokenizer.ggml.model")) {
    refuse_unknown_keys();
    read_tokens();
    for (const RoleId& role : kRoles) {
      const std::int64_t otherwise = model_ == "llama"  ? role.llama
                                     : model_ == "bert" ? role.bert
                                     : model_ == "t5"   ? role.t5
                                                        : -1;
      const std::string name = key_of(role);
      const std::int64_t id = section_.count(name.c_str(), otherwise);
      const bool there = id >= 0 && static_cast<std::size_t>(id) < tokens_.size();
      if (!there && section_.find(name.c_str()) != nullptr)
        section_.fail(name, "is ", id, ": expected the id of one of ", tokens_.size(), " tokens");
      if (there) roles_[role.role] = id;
    }
  }

  json tokenizer_json() const {
    json root = model_ == "gpt2"    ? byte_level()
                : model_ == "llama" ? sentencepiece_bpe()
                : model_ == "t5"    ? unigram()
                : model_ == "bert"  ? word_piece()
                                    : json();
    if (root.is_null())
      section_.fail(key("model"), "is '", model_,
                    "', which the zoo does not have: expected gpt2, llama, t5 or bert");
    root["version"] = "1.0";
    root["added_tokens"] = added_tokens();
    return root;
  }

  /// tokenizer_config.json.
  json settings() const {
    json settings = fast_tokenizer_config();
    for (const auto& [role, id] : roles_) settings[role] = tokens_[static_cast<std::size_t>(id)];
    if (model_ == "bert" && roles_.contains("bos_token")) settings["cls_token"] = settings["bos_token"];
    return settings;
  }

 private:
  static std::string key(std::string_view name) { return kPrefix + std::string(name); }

  // Older files of BERT name [CLS] in cls_token_id alone.
  std::string key_of(const RoleId& role) const {
    const std::string own = key(role.key), cls = key("cls_token_id");
    if (model_ != "bert" || role.role != std::string_view("bos_token")) return own;
    const bool only_cls = section_.find(own.c_str()) == nullptr && section_.find(cls.c_str()) != nullptr;
    return only_cls ? cls : own;
  }

  bool flag(const char* name, bool otherwise) const { return section_.flag(key(name).c_str(), otherwise); }

  void refuse_unknown_keys() const {
    for (const auto& [name, value] : section_.object().items()) {
      if (!name.starts_with(kPrefix) || name.ends_with("_token_id")) continue;
      const std::string_view rest = std::string_view(name).substr(std::string_view(kPrefix).size());
      if (std::ranges::count(kKnown, rest) == 0)
        section_.fail(name, "is a key that the zoo does not know: it may change the tokens");
    }
  }

  // A list of the vocabulary's length; empty if it is absent and not required.
  template <class T>
  std::vector<T> list(const char* name, bool required, bool (json::*is)() const noexcept) const {
    std::vector<T> values;
    if (!required && section_.find(key(name).c_str()) == nullptr) return values;
    for (const json& value : section_.require(key(name).c_str(), JsonType::array)) {
      if (!(value.*is)()) section_.fail(key(name), "holds ", value.dump(), ", which is of another type");
      values.push_back(value.get<T>());
    }
    if (!tokens_.empty() && values.size() != tokens_.size())
      section_.fail(key(name), "has ", values.size(), " elements: expected one for each of ", tokens_.size(),
                    " tokens");
    return values;
  }

  void read_tokens() {
    tokens_ = list<std::string>("tokens", true, &json::is_string);
    if (tokens_.empty()) section_.fail(key("tokens"), "is empty");
    const auto types = list<std::int64_t>("token_type", false, &json::is_number_integer);
    types_.assign(types.begin(), types.end());
    types_.resize(tokens_.size(), kNormal);
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      std::string& token = tokens_[id];
      if (token.empty()) token = "[EMPTY_" + std::to_string(id) + "]";  // as in llama.cpp
      if (model_ == "bert" && types_[id] != kControl)
        token = token.starts_with(kSpaceMark) ? token.substr(kSpaceMark.size()) : "##" + token;
      const auto [other, added] = ids_.emplace(token, id);
      if (!added)
        section_.fail(key("tokens"), "has ", json(token).dump(), " twice, as ", other->second, " and ", id);
    }
  }

  json added_tokens() const {
    json added = json::array();
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      if (types_[id] != kControl && types_[id] != kUserDefined && types_[id] != kUnknown) continue;
      AddedToken token = special_token(tokens_[id], static_cast<TokenId>(id));
      token.special = types_[id] != kUserDefined;
      token.rstrip = takes_spaces(id);
      added.push_back(added_token_json(token));
    }
    return added;
  }

  // Phi-3's tokens include the spaces after them; the file does not record that. llama.cpp does the same.
  bool takes_spaces(std::size_t id) const {
    const std::string& token = tokens_[id];
    return section_.text("general.architecture", "") == "phi3" && model_ == "llama" &&
           types_[id] != kUnknown && token != "<s>" && token != "<|endoftext|>";
  }

  std::string role(const char* name) const {
    const auto found = roles_.find(name);
    if (found == roles_.end()) section_.fail(key("tokens"), "lacks the ", name);
    return tokens_[static_cast<std::size_t>(found->second)];
  }

  // One text, or two, each between tokens of the roles `first` and `last`, which may be null.
  json between(const char* first, const char* last, bool first_again, int second_type) const {
    const auto framed = [&](const char* text, bool begins) {
      std::vector<std::string> words{text};
      if (begins && first != nullptr) words.insert(words.begin(), role(first));
      if (last != nullptr) words.push_back(role(last));
      return words;
    };
    const auto id = [&](const std::string& token) { return static_cast<std::int64_t>(ids_.at(token)); };
    const std::vector<std::string> single = framed("A", true), second = framed("B", first_again);
    std::vector<std::string> pair = single;
    pair.insert(pair.end(), second.begin(), second.end());
    return template_json(single, pair, id, second_type);
  }

  json bos_and_eos(bool bos, bool eos) const {
    return between(flag("add_bos_token", bos) ? "bos_token" : nullptr,
                   flag("add_eos_token", eos) ? "eos_token" : nullptr, true, model_ == "t5" ? 0 : 1);
  }

  json byte_level() const {
    const std::string pre = section_.text(key("pre").c_str());
    const auto& all = gguf_splittings();
    const auto found = std::ranges::find_if(all, [&](const GgufSplitting& splitting) {
      return splitting.names.find(" " + pre + " ") != std::string_view::npos;
    });
    if (found == all.end())
      section_.fail(key("pre"), "is '", pre, "', a way to cut words that the zoo does not know");
    json parts = json::array();
    for (const std::string& pattern : found->patterns) parts.push_back(split_json(pattern));
    const json bytes =
        byte_level_json(/*add_prefix_space=*/false, /*trim_offsets=*/true, /*use_regex=*/false);
    parts.push_back(bytes);
    json root{{"pre_tokenizer", sequence_json("pretokenizers", parts)}, {"decoder", bytes}};
    if (found->composes) root["normalizer"] = {{"type", "NFC"}};
    root["model"] = {{"type", "BPE"},
                     {"vocab", vocabulary_json(tokens_)},
                     {"ignore_merges", found->keeps_whole_words},
                     {"merges", section_.require(key("merges").c_str(), JsonType::array)}};
    root["post_processor"] = bos_and_eos(found->begins_text, false);
    return root;
  }

  // Every pair of pieces that forms a piece, ordered by the score of the result, best first.
  json merges() const {
    const auto scores = list<double>("scores", true, &json::is_number);
    std::vector<std::size_t> order = indices_below(tokens_.size());
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
    json merges = json::array();
    for (const std::size_t id : order) {
      const std::string& token = tokens_[id];
      if (types_[id] == kControl || types_[id] == kUnknown || types_[id] == kByte) continue;
      for (std::size_t at = character_end(token, 0); at < token.size(); at = character_end(token, at)) {
        const std::string left = token.substr(0, at), right = token.substr(at);
        if (ids_.contains(left) && ids_.contains(right)) merges.push_back({left, right});
      }
    }
    return merges;
  }

  json sentencepiece_bpe() const {
    const bool prepends = flag("add_space_prefix", true);
    json normalizers = json::array();
    if (prepends) normalizers.push_back({{"type", "Prepend"}, {"prepend", kSpaceMark}});
    normalizers.push_back(replace_json({{"String", " "}}, kSpaceMark));
    json root{{"normalizer", sequence_json("normalizers", normalizers)},
              {"decoder", byte_fallback_decoder_json(prepends)}};
    root["model"] = {{"type", "BPE"},      {"vocab", vocabulary_json(tokens_)},
                     {"merges", merges()}, {"unk_token", role("unk_token")},
                     {"fuse_unk", true},   {"byte_fallback", true}};
    root["post_processor"] = bos_and_eos(true, false);
    return root;
  }

  json unigram() const {
    const auto scores = list<double>("scores", true, &json::is_number);
    const bool prepends = flag("add_space_prefix", true);
    const json words = metaspace_json(prepends ? "always" : "never", /*split=*/true);
    json parts = json::array({words});
    if (flag("remove_extra_whitespaces", false))
      parts.insert(parts.begin(), json{{"type", "WhitespaceSplit"}});
    json root{{"pre_tokenizer", sequence_json("pretokenizers", parts)}, {"decoder", words}};
    if (section_.find(key("precompiled_charsmap").c_str()) != nullptr) {
      std::string bytes;
      for (const json& byte : section_.require(key("precompiled_charsmap").c_str(), JsonType::array)) {
        if (!byte.is_number_integer() || byte < -128 || byte > 255)
          section_.fail(key("precompiled_charsmap"), "holds ", byte.dump(), ", which is no byte");
        bytes += static_cast<char>(byte.get<int>());
      }
      root["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", encode_base64(bytes)}};
    }
    const bool has_bytes = std::ranges::count(types_, kByte) > 0;
    root["model"] = {{"type", "Unigram"}, {"vocab", json::array()}, {"byte_fallback", has_bytes}};
    if (has_bytes) root["decoder"] = sequence_json("decoders", {{{"type", "ByteFallback"}}, words});
    for (std::size_t id = 0; id < tokens_.size(); ++id)
      root["model"]["vocab"].push_back({tokens_[id], scores[id]});
    role("unk_token");
    root["model"]["unk_id"] = roles_.at("unk_token");
    root["post_processor"] = bos_and_eos(false, true);
    return root;
  }

  json word_piece() const {
    json normalizer{{"type", "BertNormalizer"}, {"lowercase", flag("normalizer.lowercase", true)}};
    if (section_.find("tokenizer.ggml.normalizer.strip_accents") != nullptr)
      normalizer["strip_accents"] = flag("normalizer.strip_accents", true);
    json root{{"normalizer", normalizer},
              {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
              {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}}};
    root["model"] = {{"type", "WordPiece"},
                     {"vocab", vocabulary_json(tokens_)},
                     {"unk_token", role("unk_token")},
                     {"continuing_subword_prefix", "##"},
                     {"max_input_chars_per_word", 100}};
    root["post_processor"] =
        between(roles_.contains("bos_token") ? "bos_token" : nullptr, "sep_token", false, 1);
    return root;
  }

  JsonSection section_;
  std::string model_;
  std::vector<std::string> tokens_;
  std::vector<std::int64_t> types_;
  std::unordered_map<std::string, std::size_t> ids_;
  std::map<std::string, std::int64_t> roles_;
};

}  // namespace

bool has_gguf_tokenizer(const std::filesystem::path& path) {
  return GgufFile::is_one(path) && GgufFile(path).metadata().contains("tokenizer.ggml.tokens");
}

std::unique_ptr<Tokenizer> read_gguf_tokenizer(const std::filesystem::path& path) {
  const GgufFile file(path);
  const GgufVocabulary vocabulary(file);
  const std::string text = json_text(vocabulary.tokenizer_json()),
                    config = json_text(vocabulary.settings(), 2);
  const json root = parse_json(text), settings = parse_json(config);
  Pipeline pipeline = read_pipeline(JsonSection(path, "", root));
  apply_settings(TokenizerSettings::of(JsonSection(path, "", settings)), pipeline);
  return std::make_unique<PipelineTokenizer>(
      std::move(pipeline),
      PipelineTokenizer::Files{{"tokenizer.json", text}, {"tokenizer_config.json", config}});
}

}  // namespace zoo
