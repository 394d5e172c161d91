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

/// The parts of a tokenizer as Hugging Face's `tokenizers` puts them together: added tokens are taken out of
/// the text, the rest is normalized, cut into words, and the model turns each word into ids; the template
/// puts special tokens around them. Parts that are empty do nothing.
struct Pipeline {
  /// Spaces that do not count as part of a token in its offsets: a ByteLevel or RoBERTa post-processor's.
  struct OffsetTrimming {
    bool add_prefix_space = true;  // the first token's only space was added, and is not there
  };
  using Roles = std::map<SpecialToken, TokenId>;

  std::string kind;
  std::vector<VocabularyEntry> vocabulary;
  std::vector<AddedToken> added_tokens;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  std::shared_ptr<const TokenModel> model;
  EncodingTemplate around = plain_template();
  std::optional<OffsetTrimming> offset_trimming;
  TokenDecoder decoder;
  bool cleans_up_spaces = false;
  Roles roles;

  /// The model takes the bytes of a word, not the characters that stand for them in its vocabulary.
  bool model_reads_bytes = false;
  /// The pre-tokenizer asks where in the original a word begins.
  bool needs_source = false;
  /// Set if normalizer and pre_tokenizer are no more than BERT's: one pass does for both.
  std::optional<BertNormalizerOptions> bert;
  /// Set if there is no normalizer and the pre-tokenizer does no more than cut by this pattern.
  std::optional<SplitPattern> only_splits;
};

/// The ids of tokens by their texts, the vocabulary's and the added ones'; new tokens get ids as `tokenizers`
/// gives them. The pipeline must outlive it.
class TokenRegistry {
 public:
  explicit TokenRegistry(Pipeline& pipeline);

  std::optional<TokenId> find(const std::string& text) const;
  /// Adds a token that texts may hold, or changes the one of that content. Its id is that of the vocabulary,
  /// else the next one, and is returned.
  TokenId add(AddedToken token);

 private:
  Pipeline& pipeline_;
  std::unordered_map<std::string, TokenId> ids_;
};

}  // namespace zoo
