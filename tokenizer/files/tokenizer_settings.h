#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tokenizer/pipeline/pipeline_tokenizer.h"

namespace zoo {

/// What tokenizer_config.json says, and where it is silent special_tokens_map.json and config.json: which
/// class of transformers the tokenizer is for, and what that adds to the vocabulary's own file.
struct TokenizerSettings {
  /// "BertTokenizer"; "" if nothing says it. Without the "Fast" at its end.
  std::string tokenizer_class;
  /// tokenizer_config.json names the class; else the model's type does.
  bool names_class = false;
  /// Tokens by role, as the files name them or, where they do not, the class.
  std::map<SpecialToken, AddedToken> roles;
  /// Of the roles, those that a file names.
  std::vector<SpecialToken> named;
  std::map<TokenId, AddedToken> added_tokens_decoder;
  std::vector<AddedToken> additional_special_tokens;
  std::optional<bool> add_bos_token, add_eos_token, add_prefix_space, do_lower_case, strip_accents,
      tokenize_chinese_chars, keep_accents, legacy, trim_offsets, clean_up_tokenization_spaces;
  std::optional<std::int64_t> extra_ids;

  /// Throws Error naming the file and the key that has a wrong type.
  static TokenizerSettings read(const std::filesystem::path& directory);

  /// The class where no file names one or the vocabulary is of another kind: its tokens stand for roles that
  /// have none.
  void use_class(std::string name);

  BertNormalizerOptions bert_cleaning() const;
  /// T5's <extra_id_0> and so on, to the tokens that texts may hold.
  void add_sentinels();
};

/// Adds the special tokens to the pipeline, and what stands around the texts where the settings or the class
/// say it, in the order in which transformers does it.
void apply_settings(const TokenizerSettings& settings, Pipeline& pipeline);

/// The class of transformers puts its own parts in the place of some of a tokenizer.json's: BERT's cleaning,
/// GPT-2's and RoBERTa's prefix space, T5's sentinels are as the settings say, whatever that file does. A
/// template there stands, whether or not the settings ask for bos and eos.
void apply_class(TokenizerSettings& settings, Pipeline& pipeline);

/// `names`, and the files beside them that say more about the tokenizer, as far as they are there.
PipelineTokenizer::Files read_tokenizer_files(const std::filesystem::path& directory,
                                              std::vector<std::string> names);

}  // namespace zoo
