#include "tokenizer/files/tokenizer_settings.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "data/base/atomic_file.h"
#include "data/base/json.h"
#include "data/base/lines.h"
#include "tokenizer/files/tokenizer_class.h"
#include "tokenizer/files/tokenizer_json.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// "[CLS]", or {"content": "[CLS]", "lstrip": false, …}
AddedToken read_token(const JsonSection& section, const std::string& key, const json& value) {
  if (value.is_string()) return special_token(value.get<std::string>());
  if (!value.is_object()) section.fail(key, "is ", value.type_name(), ": expected a text or an object");
  AddedToken token = read_added_token(JsonSection(section.file(), key, value));
  token.special = true;
  return token;
}

// A text under any other key that ends in "_token", such as image_token, is a special token too.
void read_roles(const JsonSection& section, TokenizerSettings& settings) {
  for (const auto& [role, key, gguf_key] : kRoleKeys) {
    const json* value = section.find(key);
    if (value == nullptr) continue;
    settings.roles[role] = read_token(section, key, *value);
    settings.named.push_back(role);
    if (role == SpecialToken::mask) settings.mask_has_rules = value->is_object();
  }
  for (const auto& [key, value] : section.object().items()) {
    const bool is_token = value.is_string() || (value.is_object() && value.contains("__type"));
    if (!is_token || !key.ends_with("_token")) continue;
    if (std::ranges::count(kRoleKeys, key, &RoleKey::key) == 0)
      settings.additional_special_tokens.push_back(read_token(section, key, value));
  }
}

// transformers uses the older key of tokenizer_config.json if the newer one has no tokens, and that of
// special_tokens_map.json if no file has the newer one.
void read_additional(const JsonSection& section, bool is_config, TokenizerSettings& settings) {
  const std::size_t before = settings.additional_special_tokens.size();
  const auto read = [&](const char* key) {
    const json* tokens = section.find(key);
    if (tokens == nullptr || !tokens->is_structured()) return false;
    for (const json& token : *tokens)
      settings.additional_special_tokens.push_back(read_token(section, key, token));
    return true;
  };
  if (read("extra_special_tokens")) settings.names_extra_tokens = true;
  const bool reads_older =
      is_config ? settings.additional_special_tokens.size() == before : !settings.names_extra_tokens;
  if (reads_older && read("additional_special_tokens") && is_config) settings.names_extra_tokens = true;
}

// {"token": ID, …}, as older versions of transformers wrote it.
void read_added_tokens_json(const JsonSection& section, TokenizerSettings& settings) {
  const auto is_special = [&settings](const std::string& text) {
    const auto is_it = [&](const AddedToken& token) { return token.content == text; };
    return std::ranges::any_of(settings.named,
                               [&](SpecialToken role) { return is_it(settings.roles.at(role)); }) ||
           std::ranges::any_of(settings.additional_special_tokens, is_it);
  };
  for (const auto& [text, id] : section.object().items()) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > 4'000'000)
      section.fail(text, "is ", id.is_structured() ? id.type_name() : id.dump(), ": expected an id");
    const bool special = is_special(text);
    settings.added_tokens_decoder[id.get<TokenId>()] = {
        .content = text, .normalized = !special, .special = special};
  }
}

void read_decoder_table(const JsonSection& section, TokenizerSettings& settings) {
  if (section.find("added_tokens_decoder") == nullptr) return;
  settings.lists_added_tokens = true;
  const JsonSection table = section.section("added_tokens_decoder");
  for (const auto& [id, token] : table.object().items()) {
    const auto number = id.size() < 9 ? number_in<std::uint32_t>(id) : std::nullopt;
    if (!number) table.fail(id, "is not an id");
    settings.added_tokens_decoder[static_cast<TokenId>(*number)] =
        read_added_token(table.section(id.c_str()));
  }
}

void read_flags(const JsonSection& section, TokenizerSettings& settings) {
  const auto read = [&section](const char* key, std::optional<bool>& flag) {
    if (section.find(key) != nullptr) flag = section.flag(key, false);
  };
  read("add_bos_token", settings.add_bos_token);
  read("add_eos_token", settings.add_eos_token);
  read("add_prefix_space", settings.add_prefix_space);
  read("do_lower_case", settings.do_lower_case);
  read("strip_accents", settings.strip_accents);
  read("tokenize_chinese_chars", settings.tokenize_chinese_chars);
  read("keep_accents", settings.keep_accents);
  read("legacy", settings.legacy);
  read("legacy_behaviour", settings.legacy_behaviour);
  read("trim_offsets", settings.trim_offsets);
  read("clean_up_tokenization_spaces", settings.clean_up_tokenization_spaces);
  if (section.flag("split_special_tokens", false))
    section.fail("split_special_tokens", "is true: the zoo does not split special tokens");
  settings.split_by_punct = section.flag("split_by_punct", false);
  if (const json* names = section.find("model_input_names"); names != nullptr && names->is_array())
    settings.gives_segments = std::ranges::find(*names, "token_type_ids") != names->end();
  if (section.find("src_lang") != nullptr) settings.src_lang = section.text("src_lang");
  if (section.find("extra_ids") != nullptr) settings.extra_ids = section.count("extra_ids", 0);
}

// The file's text, if it exists.
template <class Read> std::optional<std::string> read_if_there(const fs::path& file, Read read) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return std::nullopt;
  std::string text = read_model_file(file, kMostSettings);
  try {
    const json root = read_json(file, text);
    read(JsonSection(file, "", root));
  } catch (const json::exception&) {
    throw Error(file, ": a value is of an unexpected kind");
  }
  return text;
}

// Same search as in transformers.
bool has_byte_level(const fs::path& tokenizer_json) {
  std::error_code ignored;
  return fs::exists(tokenizer_json, ignored) &&
         read_model_file(tokenizer_json, kMostVocabulary).find("\"ByteLevel\"") != std::string::npos;
}

std::optional<bool> is_left(const JsonSection& section, const char* key) {
  if (section.find(key) == nullptr) return std::nullopt;
  const std::string side = section.text(key);
  if (side != "left" && side != "right") section.fail(key, "is '", side, "': expected left or right");
  return side == "left";
}

void read_limits(const JsonSection& section, TokenizerSettings& settings) {
  // transformers writes 1e30 for "no limit".
  constexpr double kNoLimit = 1e9;
  const char* const key = section.find("model_max_length") != nullptr ? "model_max_length" : "max_len";
  if (const json* length = section.find(key)) {
    const double tokens = length->is_number() ? length->get<double>() : 0;
    if (tokens < 1 || tokens != std::floor(tokens))
      section.fail(key, "is ", length->dump(), ": expected a number of tokens");
    if (tokens < kNoLimit) settings.max_length = static_cast<std::size_t>(tokens);
  }
  settings.truncates_left = is_left(section, "truncation_side");
  settings.pads_left = is_left(section, "padding_side");
}

// One of the `known` tokens keeps its matching rules (lstrip, single_word, …).
TokenId add_special(AddedToken token, const std::vector<AddedToken>& known, TokenRegistry& registry) {
  for (const AddedToken& one : known)
    if (one.content == token.content) token = one;
  token.special = true;
  return registry.add(std::move(token));
}

// Common special tokens and their roles, used if no file names roles.
constexpr std::pair<SpecialToken, const char*> kCommonNames[] = {
    {SpecialToken::cls, "[CLS]"}, {SpecialToken::sep, "[SEP]"},        {SpecialToken::pad, "[PAD]"},
    {SpecialToken::pad, "<pad>"}, {SpecialToken::mask, "[MASK]"},      {SpecialToken::mask, "<mask>"},
    {SpecialToken::unk, "[UNK]"}, {SpecialToken::unk, "<unk>"},        {SpecialToken::bos, "<s>"},
    {SpecialToken::eos, "</s>"},  {SpecialToken::eos, "<|endoftext|>"}};

void guess_roles(Pipeline& pipeline) {
  for (const auto& [role, text] : kCommonNames) {
    for (const AddedToken& token : pipeline.added_tokens)
      if (token.special && token.content == text) pipeline.roles.try_emplace(role, token.id);
  }
}

}  // namespace

TokenizerSettings TokenizerSettings::of(const JsonSection& section) {
  TokenizerSettings settings;
  settings.named_class = canonical_class(section.text("tokenizer_class", ""));
  read_roles(section, settings);
  read_additional(section, /*is_config=*/true, settings);
  read_decoder_table(section, settings);
  read_flags(section, settings);
  read_limits(section, settings);
  return settings;
}

TokenizerSettings TokenizerSettings::read(const fs::path& directory, const json* config) {
  TokenizerSettings settings;
  const auto read_and_keep = [&](const char* name, auto read) {
    if (auto text = read_if_there(directory / name, read)) settings.files[name] = *std::move(text);
  };
  read_and_keep("tokenizer_config.json", [&](const JsonSection& section) { settings = of(section); });
  // transformers lets the two older files override this one only if it lists no added tokens.
  const auto read_older = [&](const char* name, auto read) {
    read_and_keep(name, [&](const JsonSection& section) {
      if (!settings.lists_added_tokens) read(section, settings);
    });
  };
  read_older("special_tokens_map.json", [](const JsonSection& section, TokenizerSettings& read) {
    read_roles(section, read);
    read_additional(section, /*is_config=*/false, read);
  });
  read_older("added_tokens.json", read_added_tokens_json);
  std::string type;
  const auto read_config = [&](const JsonSection& section) {
    type = section.text("model_type", "");
    if (settings.named_class.empty())
      settings.named_class = canonical_class(section.text("tokenizer_class", ""));
  };
  const fs::path config_file = directory / "config.json";
  if (config != nullptr) {
    read_config(JsonSection(config_file, "", *config));
  } else {
    read_if_there(config_file, read_config);
  }
  const bool is_byte_level =
      settings.named_class == "LlamaTokenizer" && has_byte_level(directory / "tokenizer.json");
  settings.use_class(chosen_class(type, settings.named_class, is_byte_level));
  // A case without tokenizer.json and a named class, for which transformers has no class.
  if (settings.named_class.empty() && type == "llama") settings.named_class = "LlamaTokenizer";
  return settings;
}

void apply_settings(const TokenizerSettings& settings, Pipeline& pipeline) {
  TokenRegistry registry(pipeline);
  for (const auto& [id, token] : settings.added_tokens_decoder)
    if (!token.content.empty()) registry.add(token);
  // If two roles name the same token, it has the rules of the later one.
  const std::vector<AddedToken> known = pipeline.added_tokens;
  for (const auto& [role, key, gguf_key] : kRoleKeys) {
    const auto found = settings.roles.find(role);
    if (found == settings.roles.end() || found->second.content.empty()) continue;
    // A default of the class is not added if the vocabulary lacks it.
    const bool is_named = std::ranges::count(settings.named, role) > 0;
    if (!is_named && !registry.find(found->second.content)) continue;
    pipeline.roles[role] = add_special(found->second, known, registry);
  }
  for (const AddedToken& token : settings.additional_special_tokens)
    if (!token.content.empty()) add_special(token, known, registry);
  if (settings.add_bos_token || settings.add_eos_token) {
    const auto ids = [&](std::optional<bool> wanted, SpecialToken role) {
      const auto found = pipeline.roles.find(role);
      return wanted.value_or(false) && found != pipeline.roles.end() ? TokenIds{found->second} : TokenIds();
    };
    pipeline.encoding_template = template_of("bos A eos", "bos A eos bos:1 B:1 eos:1",
                                             {{"bos", ids(settings.add_bos_token, SpecialToken::bos)},
                                              {"eos", ids(settings.add_eos_token, SpecialToken::eos)}});
  }
  if (settings.roles.empty()) guess_roles(pipeline);
  const bool is_bpe = pipeline.kind.ends_with("bpe");
  pipeline.cleans_up_spaces = settings.clean_up_tokenization_spaces.value_or(false) && !is_bpe;
}

std::unique_ptr<PipelineTokenizer> tokenizer_of(Pipeline pipeline, const TokenizerSettings& settings,
                                                const fs::path& file, std::vector<std::string> others) {
  others.push_back(file.filename().string());
  PipelineTokenizer::Files files = settings.files;
  for (const std::string& name : others) files[name] = read_model_file(file.parent_path() / name);
  return std::make_unique<PipelineTokenizer>(std::move(pipeline), std::move(files));
}

}  // namespace zoo
