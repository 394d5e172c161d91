#pragma once

#include <array>
#include <string>
#include <vector>

#include "tokenizer/pipeline/byte_trie.h"
#include "tokenizer/pipeline/normalizer.h"
#include "tokenizer/pipeline/pre_tokenizer.h"

namespace zoo {

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
  const AddedToken* longest_at(std::string_view text, std::size_t at, std::size_t& end) const;
  void split_word(std::string_view text, std::uint32_t begin, std::vector<Word>& words) const;

  std::vector<AddedToken> tokens_;
  ByteTrie trie_;
  std::array<bool, 256> begins_{};
};

}  // namespace zoo
