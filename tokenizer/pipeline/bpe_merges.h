#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "tokenizer/pipeline/flat_table.h"
#include "tokenizer/token_id.h"

namespace zoo {

/// A part of a word: its current token and its number of bytes in the vocabulary's spelling of the word.
struct BpeSymbol {
  TokenId id;
  std::uint32_t length;
};

/// The merges of a BPE model (Sennrich et al., 2016), indexed by their pair.
class BpeMerges {
 public:
  struct Merge {
    std::uint32_t rank;  // position in the list; lower ranks merge first
    TokenId id;          // the merged token
  };

  void insert(TokenId left, TokenId right, Merge merge) { merges_.insert(key(left, right), merge); }
  const Merge* find(TokenId left, TokenId right) const { return merges_.find(key(left, right)); }
  std::size_t size() const { return merges_.size(); }

  /// Merges neighbours of `symbols` until no merge applies: the lowest rank first, of equal ranks the
  /// leftmost. O(n log n) in the number of symbols. Returns the number of pairs examined.
  std::size_t apply(std::vector<BpeSymbol>& symbols) const;

 private:
  static std::uint64_t key(TokenId left, TokenId right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(right);
  }

  std::size_t apply_by_scanning(std::vector<BpeSymbol>& symbols) const;
  std::size_t apply_by_queue(std::vector<BpeSymbol>& symbols) const;

  FlatTable<Merge> merges_;
};

}  // namespace zoo
