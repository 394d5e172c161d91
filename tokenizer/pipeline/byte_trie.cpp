#include "tokenizer/pipeline/byte_trie.h"

#include <algorithm>

namespace zoo {
namespace {

constexpr std::size_t kBytes = 256;

}  // namespace

ByteTrie::ByteTrie(std::span<const Entry> entries) : cells_(kBytes + 1) {
  cells_[kRoot].parent = kRoot;  // occupied; no base reaches it, because every base is at least 1
  cells_[kRoot].base = 1;
  std::vector<Entry> sorted;
  for (const Entry& entry : entries)
    if (!entry.text.empty()) sorted.push_back(entry);
  std::ranges::stable_sort(sorted, [](const Entry& a, const Entry& b) { return a.text < b.text; });

  // Nodes whose children have no cells yet, with the entries below them.
  struct Pending {
    Node node;
    std::size_t begin, end, depth;
  };
  std::vector<Pending> pending{{kRoot, 0, sorted.size(), 0}};
  std::vector<unsigned char> bytes;
  while (!pending.empty()) {
    const Pending here = pending.back();
    pending.pop_back();
    std::size_t begin = here.begin;
    while (begin < here.end && sorted[begin].text.size() == here.depth)
      cells_[here.node].id = sorted[begin++].id;
    if (begin == here.end) continue;

    const auto byte_at = [&](std::size_t i) {
      return static_cast<unsigned char>(sorted[i].text[here.depth]);
    };
    bytes.clear();
    for (std::size_t i = begin; i < here.end; ++i)
      if (bytes.empty() || bytes.back() != byte_at(i)) bytes.push_back(byte_at(i));
    const Node base = free_base(bytes);
    cells_[here.node].base = base;
    for (const unsigned char byte : bytes) cells_[base + byte].parent = here.node;
    for (std::size_t i = begin; i < here.end;) {
      std::size_t end = i;
      while (end < here.end && byte_at(end) == byte_at(i)) ++end;
      pending.push_back({base + byte_at(i), i, end, here.depth + 1});
      i = end;
    }
  }
}

// The lowest base at which all cells for these sorted bytes are free.
ByteTrie::Node ByteTrie::free_base(std::span<const unsigned char> bytes) {
  const auto is_free = [this](std::size_t at) { return cells_[at].parent == kNoNode; };
  while (!is_free(first_free_))
    if (++first_free_ + kBytes >= cells_.size()) cells_.resize(cells_.size() * 2);
  const std::size_t begin = std::max<std::size_t>(first_free_, bytes.front() + std::size_t{1});
  for (std::size_t at = begin;; ++at) {
    const std::size_t base = at - bytes.front();
    if (base + 2 * kBytes >= cells_.size()) cells_.resize(cells_.size() * 2 + kBytes);
    if (!is_free(at)) continue;
    if (std::ranges::all_of(bytes, [&](unsigned char b) { return is_free(base + b); })) {
      // In a nearly full array, a search from the first hole would take longer and longer. Skipping these
      // holes keeps the construction linear in the number of nodes.
      constexpr std::size_t kTooMany = 64;
      if (at - begin > kTooMany) first_free_ = at;
      return static_cast<Node>(base);
    }
  }
}

ByteTrie::Match ByteTrie::longest(Node from, std::string_view text) const {
  Match longest;
  for (std::size_t at = 0; from != kNoNode && at < text.size();) {
    from = child(from, static_cast<unsigned char>(text[at++]));
    if (from != kNoNode && id(from) != kNoId) longest = {id(from), at};
  }
  return longest;
}

ByteTrie::Node ByteTrie::walk(Node from, std::string_view text) const {
  for (const char c : text) {
    if (from == kNoNode) break;
    from = child(from, static_cast<unsigned char>(c));
  }
  return from;
}

std::optional<TokenId> ByteTrie::find(std::string_view text) const {
  const Node node = walk(kRoot, text);
  if (node == kNoNode || id(node) == kNoId) return std::nullopt;
  return id(node);
}

}  // namespace zoo
