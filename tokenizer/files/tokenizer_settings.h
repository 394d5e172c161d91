#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tokenizer/pipeline/pipeline_tokenizer.h"

namespace zoo {

class JsonSection;

/// A role and its keys in the settings files and in GGUF.
struct RoleKey {
  SpecialToken role;
  const char *key, *gguf_key;
};

/// In the order in which transformers adds their tokens.
inline constexpr RoleKey kRoleKeys[] = {
    {SpecialToken::bos, "bos_token", "tokenizer.ggml.bos_token_id"},
    {SpecialToken::eos, "eos_token", "tokenizer.ggml.eos_token_id"},
    {SpecialToken::unk, "unk_token", "tokenizer.ggml.unknown_token_id"},
    {SpecialToken::sep, "sep_token", "tokenizer.ggml.seperator_token_id"},  // the format's spelling
    {SpecialToken::pad, "pad_token", "tokenizer.ggml.padding_token_id"},
    {SpecialToken::cls, "cls_token", "tokenizer.ggml.cls_token_id"},
    {SpecialToken::mask, "mask_token", "tokenizer.ggml.mask_token_id"}};

/// The content of tokenizer_config.json, special_tokens_map.json, added_tokens.json and, for the class,
/// config.json: the tokenizer class of transformers and what it adds to the vocabulary file.
struct TokenizerSettings {
  /// canonical_class() of the name in tokenizer_config.json, else in config.json; "" if neither names one.
  std::string named_class;
  /// chosen_class() for the directory; "" if no class changes tokenizer.json.
  std::string tokenizer_class;
  /// Tokens by role: from the files, else the class's defaults.
  std::map<SpecialToken, AddedToken> roles;
  /// The roles that a file names.
  std::vector<SpecialToken> named;
  /// Tokens that are added in the order of these ids: from tokenizer_config.json, else added_tokens.json.
  std::map<TokenId, AddedToken> added_tokens_decoder;
  bool lists_added_tokens = false;  // tokenizer_config.json has added tokens
  std::vector<AddedToken> additional_special_tokens;
  bool names_extra_tokens = false;  // a file has a list of extra tokens, even an empty one
  bool mask_has_rules = false;      // a file gives mask_token as an object
  std::optional<bool> add_bos_token, add_eos_token, add_prefix_space, do_lower_case, strip_accents,
      tokenize_chinese_chars, keep_accents, legacy, legacy_behaviour, trim_offsets,
      clean_up_tokenization_spaces;
  bool split_by_punct = false;
  std::optional<bool> gives_segments;  // "model_input_names"
  std::optional<std::int64_t> extra_ids;
  std::optional<std::string> src_lang;
  PipelineTokenizer::Files files;                 // contents of the files, for a saved tokenizer
  std::optional<std::size_t> max_length;          // "model_max_length", else "max_len"
  std::optional<bool> truncates_left, pads_left;  // "truncation_side", "padding_side"; none: tokenizer.json's

  /// `config` is the content of config.json; null: not read yet. Throws Error naming the file and the key
  /// whose value has a wrong type, or is unknown to transformers.
  static TokenizerSettings read(const std::filesystem::path& directory,
                                const nlohmann::json* config = nullptr);

  /// Only the content of a tokenizer_config.json.
  static TokenizerSettings of(const JsonSection& tokenizer_config);

  /// Sets the class and fills in its default tokens.
  void use_class(std::string name);

  /// Adds T5's `<extra_id_0>` and so on to the special tokens, unless files name such tokens.
  void add_sentinels();
};

/// Adds the special tokens and the template to the pipeline, in the order of transformers.
void apply_settings(const TokenizerSettings& settings, Pipeline& pipeline);

/// A tokenizer that saves the settings files, this file and `others` beside it.
std::unique_ptr<PipelineTokenizer> tokenizer_of(Pipeline pipeline, const TokenizerSettings& settings,
                                                const std::filesystem::path& file,
                                                std::vector<std::string> others = {});

}  // namespace zoo
