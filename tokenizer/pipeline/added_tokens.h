#pragma once

#include <array>
#include <string>
#include <vector>

#include "tokenizer/pipeline/byte_trie.h"
#include "tokenizer/pipeline/normalizer.h"
#include "tokenizer/pipeline/pre_tokenizer.h"

namespace zoo {

/// A token that is found in a text before the model sees it, with tokenizer.json's names.
struct AddedToken {
  std::string content;
  TokenId id = -1;
  bool single_word = false;  // not inside a word
  bool lstrip = false;       // white space before it belongs to it
  bool rstrip = false;       // white space behind it
  bool normalized = true;    // looked for in the normalized text, else in the text as it is
  bool special = false;      // stands for nothing when decoding
};

/// Finds tokens in texts: at each place the longest.
class AddedTokenFinder {
 public:
  explicit AddedTokenFinder(std::vector<AddedToken> tokens);

  bool empty() const { return tokens_.empty(); }
  /// Whether a token may begin somewhere in the text: a quick look at its bytes.
  bool may_find(std::string_view text) const;
  /// Cuts the words of the text at the tokens.
  void split(SplitText& text) const;

 private:
  const AddedToken* longest_at(std::string_view text, std::size_t at, std::size_t& end) const;
  void split_word(std::string_view text, std::uint32_t begin, std::vector<Word>& words) const;

  std::vector<AddedToken> tokens_;
  ByteTrie trie_;
  std::array<bool, 256> begins_{};
};

}  // namespace zoo
