#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/token_id.h"

namespace zoo {

/// Texts and their ids as a trie over bytes: finding all entries that begin at a position takes one step per
/// byte. A double array (Aoe, 1989): the child of a node by a byte is at the node's base + byte.
class ByteTrie {
 public:
  struct Entry {
    std::string_view text;
    TokenId id;
  };
  using Node = std::uint32_t;

  static constexpr Node kRoot = 0;
  static constexpr Node kNoNode = ~Node{0};
  static constexpr TokenId kNoId = -1;

  ByteTrie() : ByteTrie(std::span<const Entry>()) {}
  /// Of entries with the same text, the last one is used. Empty texts are dropped.
  explicit ByteTrie(std::span<const Entry> entries);

  /// The child of a node by a byte; kNoNode if there is none.
  Node child(Node node, unsigned char byte) const {
    const Node at = cells_[node].base + byte;
    return cells_[at].parent == node ? at : kNoNode;
  }
  /// The id of the entry that ends at a node; kNoId if none does.
  TokenId id(Node node) const { return cells_[node].id; }

  /// An entry and its size in bytes, without what `from` stands for.
  struct Match {
    TokenId id = kNoId;
    std::size_t size = 0;
  };
  /// The longest entry below a node with which the text begins.
  Match longest(Node from, std::string_view text) const;

  Node walk(Node from, std::string_view text) const;
  std::optional<TokenId> find(std::string_view text) const;

 private:
  struct Cell {
    Node parent = kNoNode;
    Node base = 0;
    TokenId id = kNoId;
  };

  Node free_base(std::span<const unsigned char> bytes);

  std::vector<Cell> cells_;
  std::size_t first_free_ = 1;
};

}  // namespace zoo
