#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tokenizer/pipeline/pipeline_tokenizer.h"

namespace zoo {

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

  /// Throws Error naming the file and the key that has a wrong type.
  static TokenizerSettings read(const std::filesystem::path& directory);

  /// Sets the class if no file names one or the vocabulary is of another kind, and fills in its default
  /// tokens.
  void use_class(std::string name);

  BertNormalizerOptions bert_cleaning() const;
  /// Adds T5's <extra_id_0> and so on to the special tokens.
  void add_sentinels();
};

/// Reads "model_max_length", "truncation_side" and "padding_side" of tokenizer_config.json. Throws Error
/// naming the file and a key with another value than transformers knows.
TextLimits read_text_limits(const std::filesystem::path& directory);

/// Adds the special tokens and the template to the pipeline, in the order of transformers.
void apply_settings(const TokenizerSettings& settings, Pipeline& pipeline);

/// Replaces the parts of a tokenizer.json that the class of transformers replaces: BERT's normalizer, the
/// prefix space of GPT-2 and RoBERTa, T5's sentinels, Llama's spaces. The file's template stays, whatever the
/// settings say about bos and eos.
void apply_class(TokenizerSettings& settings, Pipeline& pipeline);

/// The pre-tokenizer and decoder that LlamaTokenizer builds from add_prefix_space and legacy.
void set_llama_spaces(const TokenizerSettings& settings, Pipeline& pipeline);

/// Reads the files `names` and the settings files of the directory, as far as they exist.
PipelineTokenizer::Files read_tokenizer_files(const std::filesystem::path& directory,
                                              std::vector<std::string> names);

}  // namespace zoo
