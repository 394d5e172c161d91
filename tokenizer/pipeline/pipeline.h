#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tokenizer/pipeline/added_tokens.h"
#include "tokenizer/pipeline/normalizer.h"
#include "tokenizer/pipeline/pre_tokenizer.h"
#include "tokenizer/pipeline/token_decoder.h"
#include "tokenizer/pipeline/token_model.h"
#include "tokenizer/tokenizer.h"

namespace zoo {

/// The parts of a tokenizer as in Hugging Face's `tokenizers`: the text is split at added tokens, the rest is
/// normalized and split into words, the model turns each word into ids, the template adds special tokens. An
/// empty part does nothing.
struct Pipeline {
  /// Excludes spaces from the offsets of a token: a ByteLevel or RoBERTa post-processor.
  struct OffsetTrimming {
    bool add_prefix_space = true;  // the first token's space, if single, was added and is not in the text
    /// An earlier post-processor has put a special token before the first, or the second, text: none of its
    /// tokens is the first.
    bool follows_special = false, second_follows_special = false;
  };
  using Roles = std::map<SpecialToken, TokenId>;

  std::string kind;
  std::vector<VocabularyEntry> vocabulary;
  std::vector<AddedToken> added_tokens;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  std::shared_ptr<const TokenModel> model;
  EncodingTemplate encoding_template = plain_template();
  std::optional<OffsetTrimming> offset_trimming;
  TokenDecoder decoder;
  bool cleans_up_spaces = false;
  Roles roles;

  /// The model's continuing_subword_prefix is not empty.
  bool marks_subwords = false;
  /// The model reads the bytes of a word instead of their characters in GPT-2's alphabet.
  bool model_reads_bytes = false;
  /// `normalizer` is, or has as one of its steps, tokenizers' Lowercase.
  bool lowercases = false;
  /// The pre-tokenizer needs the position of a word in the original text.
  bool needs_source = false;
  /// Set if normalizer and pre_tokenizer are exactly BERT's: BertWords replaces both.
  std::optional<BertNormalizerOptions> bert;
  /// Set if there is no normalizer and the pre-tokenizer only splits by this pattern.
  std::optional<SplitPattern> only_splits;
};

/// The ids of the vocabulary and the added tokens, by text. New tokens get ids as in `tokenizers`. The
/// pipeline must outlive it.
class TokenRegistry {
 public:
  explicit TokenRegistry(Pipeline& pipeline);

  std::optional<TokenId> find(const std::string& text) const;
  /// Adds a token, or replaces the one with the same content. Returns its id: that of the vocabulary, else
  /// the next free one.
  TokenId add(AddedToken token);

 private:
  Pipeline& pipeline_;
  std::unordered_map<std::string, TokenId> ids_;
};

}  // namespace zoo
