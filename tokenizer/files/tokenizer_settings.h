#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tokenizer/pipeline/pipeline_tokenizer.h"

namespace zoo {

class JsonSection;

/// The content of tokenizer_config.json, and as fallbacks special_tokens_map.json and config.json: the
/// tokenizer class of transformers and what it adds to the vocabulary file.
struct TokenizerSettings {
  /// "BertTokenizer", without a final "Fast"; "" if no file names a class.
  std::string tokenizer_class;
  /// True if tokenizer_config.json names the class; else it follows from the model type.
  bool names_class = false;
  /// Tokens by role: from the files, else defaults of the class.
  std::map<SpecialToken, AddedToken> roles;
  /// The roles that a file names.
  std::vector<SpecialToken> named;
  std::map<TokenId, AddedToken> added_tokens_decoder;
  std::vector<AddedToken> additional_special_tokens;
  std::optional<bool> add_bos_token, add_eos_token, add_prefix_space, do_lower_case, strip_accents,
      tokenize_chinese_chars, keep_accents, legacy, trim_offsets, clean_up_tokenization_spaces;
  std::optional<std::int64_t> extra_ids;
  PipelineTokenizer::Files files;  // their texts, which a saved tokenizer keeps
  TextLimits limits;               // "model_max_length", "truncation_side", "padding_side"

  /// Throws Error naming the file and the key whose value has a wrong type, or one that transformers does not
  /// know.
  /// Without a `model_type` config.json's is read.
  static TokenizerSettings read(const std::filesystem::path& directory, std::string_view model_type = "");

  /// The content of a tokenizer_config.json alone.
  static TokenizerSettings of(const JsonSection& tokenizer_config);

  /// Sets the class if no file names one or the vocabulary is of another kind, and fills in its default
  /// tokens.
  void use_class(std::string name);

  BertNormalizerOptions bert_cleaning() const;
  /// Adds T5's `<extra_id_0>` and so on to the special tokens.
  void add_sentinels();
};

/// Adds the special tokens and the template to the pipeline, in the order of transformers.
void apply_settings(const TokenizerSettings& settings, Pipeline& pipeline);

/// Replaces the parts of a tokenizer.json that the class of transformers replaces: BERT's normalizer, the
/// prefix space of GPT-2 and RoBERTa, T5's sentinels, Llama's spaces. The file's template stays, whatever the
/// settings say about bos and eos.
void apply_class(TokenizerSettings& settings, Pipeline& pipeline);

/// The pre-tokenizer and decoder that LlamaTokenizer builds from add_prefix_space and legacy.
void set_llama_spaces(const TokenizerSettings& settings, Pipeline& pipeline);

/// The settings files and the files `names` of the directory.
PipelineTokenizer::Files tokenizer_files(const TokenizerSettings& settings,
                                         const std::filesystem::path& directory,
                                         const std::vector<std::string>& names);

}  // namespace zoo
