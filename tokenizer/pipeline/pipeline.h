#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tokenizer/pipeline/byte_trie.h"
#include "tokenizer/pipeline/normalizer.h"
#include "tokenizer/pipeline/pre_tokenizer.h"
#include "tokenizer/pipeline/token_model.h"
#include "tokenizer/text/text_pattern.h"
#include "tokenizer/tokenizer.h"

namespace zoo {

/// Changes the texts of tokens so that their concatenation is the decoded text: a decoder of tokenizer.json.
using TokenDecoder = std::function<void(std::vector<std::string>&)>;

/// Puts a space before every token except the first and those with `prefix`, which is removed. `cleanup`
/// removes the spaces before English punctuation.
TokenDecoder word_piece_decoder(std::string prefix, bool cleanup);
/// Turns GPT-2's alphabet into bytes; unless `is_last`, invalid UTF-8 becomes U+FFFD. Other tokens stay.
TokenDecoder byte_level_decoder(bool is_last);
/// Turns the mark into spaces, but removes it from the first token or the last, if they are bare.
TokenDecoder mark_decoder(std::string mark, bool first_is_bare, bool last_is_bare);
/// Turns <0xC3> <0xA9> into é; if a run is not UTF-8, each of its bytes becomes U+FFFD.
void join_fallback_bytes(std::vector<std::string>& tokens);
/// Joins all tokens.
void fuse_tokens(std::vector<std::string>& tokens);
TokenDecoder replace_decoder(TextPattern pattern, std::string content);
/// Removes up to `start` copies of a character at the beginning of every token and up to `stop` at its end.
TokenDecoder strip_decoder(char32_t character, std::size_t start, std::size_t stop);

/// Normalizers, pre-tokenizers or decoders, one after another.
template <class Text> std::function<void(Text&)> in_sequence(std::vector<std::function<void(Text&)>> parts) {
  if (parts.size() == 1) return std::move(parts[0]);
  return [parts = std::move(parts)](Text& text) {
    for (const auto& part : parts) part(text);
  };
}

/// Removes the spaces before punctuation and English contractions.
std::string clean_up_spaces(std::string text);

/// A token at which a text is split before the model runs. The names are tokenizer.json's.
struct AddedToken {
  std::string content;
  TokenId id = -1;
  bool single_word = false;  // matches only complete words
  bool lstrip = false;       // includes the white space before it
  bool rstrip = false;       // includes the white space after it
  bool normalized = true;    // matches in the normalized text, else in the original
  bool special = false;      // skipped when decoding
};

/// The token for a text in a role or in a list of special tokens.
AddedToken special_token(std::string content, TokenId id = -1);

/// Finds added tokens in texts. The longest match wins.
class AddedTokenFinder {
 public:
  explicit AddedTokenFinder(std::vector<AddedToken> tokens);

  bool empty() const { return tokens_.empty(); }
  /// A quick test of the bytes: false if no token can begin in the text.
  bool may_find(std::string_view text) const;
  /// Splits the words of the text at the tokens.
  void split(SplitText& text) const;

 private:
  void split_word(std::string_view text, std::uint32_t begin, std::vector<Word>& words) const;

  std::vector<AddedToken> tokens_;
  ByteTrie trie_;
  std::array<bool, 256> begins_{};
};

/// The parts of a tokenizer as in Hugging Face's `tokenizers`: the text is split at added tokens, the rest is
/// normalized and split into words, the model turns each word into ids, the template adds special tokens. An
/// empty part does nothing.
struct Pipeline {
  /// Excludes spaces from the offsets of a token: a ByteLevel or RoBERTa post-processor.
  struct OffsetTrimming {
    bool add_prefix_space = true;  // the first token's space, if single, was added and is not in the text
    /// An earlier post-processor has put a special token before the first, or second, text's first token.
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
  /// Of texts in the language that a translator writes, if it is another tokenizer: Marian's.
  std::shared_ptr<const Tokenizer> target;
};

/// The ids of vocabulary and added tokens by text; new ones as in `tokenizers`. The pipeline must outlive it.
class TokenRegistry {
 public:
  explicit TokenRegistry(Pipeline& pipeline);

  std::optional<TokenId> find(const std::string& text) const;
  /// Adds or replaces the token of a content. Returns its id: that of the vocabulary, else the next free one.
  TokenId add(AddedToken token);

 private:
  Pipeline& pipeline_;
  std::unordered_map<std::string, TokenId> ids_;
};

}  // namespace zoo
