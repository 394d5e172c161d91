#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "tokenizer/pipeline/flat_table.h"
#include "tokenizer/token_id.h"

namespace zoo {

/// A part of a word: the token it is so far and how many bytes of the word it covers.
struct BpeSymbol {
  TokenId id;
  std::uint32_t length;
};

/// The merges of a BPE model by the pair that they join (Sennrich et al., 2016).
class BpeMerges {
 public:
  struct Merge {
    std::uint32_t rank;  // the place in the list: lower is earlier
    TokenId id;          // what the pair becomes
  };

  void insert(TokenId left, TokenId right, Merge merge) { merges_.insert(key(left, right), merge); }
  const Merge* find(TokenId left, TokenId right) const { return merges_.find(key(left, right)); }
  std::size_t size() const { return merges_.size(); }

  /// Joins neighbours of `symbols` while any can be joined: of all pairs the one of the lowest rank, of equal
  /// ones the leftmost. O(n log n) in the number of symbols. Returns how many pairs were looked at.
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
