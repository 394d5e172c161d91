#include "tokenizer/pipeline/bpe_merges.h"

#include <algorithm>
#include <array>
#include <functional>
#include <queue>

namespace zoo {
namespace {

// Up to this length, scanning all pairs after every merge is faster than a queue.
constexpr std::size_t kShortWord = 64;

constexpr std::uint32_t kNoMerge = std::numeric_limits<std::uint32_t>::max();
constexpr BpeMerges::Merge kNotMerged{kNoMerge, 0};

// A symbol of a long word in a linked list.
struct Node {
  BpeSymbol symbol;
  BpeMerges::Merge with_next;  // kNotMerged if the node was merged away
  std::uint32_t previous, next;
};

constexpr std::uint32_t kEnd = std::numeric_limits<std::uint32_t>::max();

}  // namespace

std::size_t BpeMerges::apply(std::vector<BpeSymbol>& symbols) const {
  if (symbols.size() < 2) return 0;
  return symbols.size() <= kShortWord ? apply_by_scanning(symbols) : apply_by_queue(symbols);
}

std::size_t BpeMerges::apply_by_scanning(std::vector<BpeSymbol>& symbols) const {
  std::array<Merge, kShortWord> with_next;
  const auto look_up = [&](std::size_t left, std::size_t right) {
    const Merge* merge = find(symbols[left].id, symbols[right].id);
    return merge == nullptr ? kNotMerged : *merge;
  };
  std::size_t size = symbols.size(), looked_at = 0;
  for (std::size_t i = 0; i + 1 < size; ++i) with_next[i] = look_up(i, i + 1);
  for (;;) {
    looked_at += size;
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < size; ++i) {
      if (with_next[i].rank < with_next[best].rank) best = i;
    }
    if (with_next[best].rank == kNoMerge) break;
    symbols[best] = {with_next[best].id, symbols[best].length + symbols[best + 1].length};
    --size;
    for (std::size_t i = best + 1; i < size; ++i) {
      symbols[i] = symbols[i + 1];
      with_next[i - 1] = with_next[i];
    }
    if (size == 1) break;
    if (best > 0) with_next[best - 1] = look_up(best - 1, best);
    if (best + 1 < size) with_next[best] = look_up(best, best + 1);
  }
  symbols.resize(size);
  return looked_at;
}

std::size_t BpeMerges::apply_by_queue(std::vector<BpeSymbol>& symbols) const {
  std::vector<Node> nodes(symbols.size());
  std::vector<std::uint64_t> entries;  // rank and position in one number, in the order of merging
  std::priority_queue queue(std::greater<>{}, std::move(entries));
  const auto link = [&](std::uint32_t left, auto push) {
    Node& node = nodes[left];
    const Merge* merge = node.next == kEnd ? nullptr : find(node.symbol.id, nodes[node.next].symbol.id);
    node.with_next = merge == nullptr ? kNotMerged : *merge;
    if (merge != nullptr) push(static_cast<std::uint64_t>(merge->rank) << 32 | left);
  };

  const auto count = static_cast<std::uint32_t>(symbols.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    nodes[i] = {symbols[i], kNotMerged, i == 0 ? kEnd : i - 1, i + 1 == count ? kEnd : i + 1};
  }
  const auto push = [&](std::uint64_t entry) { queue.push(entry); };
  for (std::uint32_t i = 0; i < count; ++i) link(i, push);

  std::size_t looked_at = count;
  for (; !queue.empty(); ++looked_at) {
    const std::uint64_t entry = queue.top();
    queue.pop();
    const auto place = static_cast<std::uint32_t>(entry);
    Node& node = nodes[place];
    if (node.with_next.rank != entry >> 32) continue;  // the pair no longer exists
    Node& right = nodes[node.next];
    node.symbol = {node.with_next.id, node.symbol.length + right.symbol.length};
    node.next = right.next;
    right.with_next = kNotMerged;
    if (node.next != kEnd) nodes[node.next].previous = place;
    link(place, push);
    if (node.previous != kEnd) link(node.previous, push);
  }

  symbols.clear();
  for (std::uint32_t i = 0; i != kEnd; i = nodes[i].next) symbols.push_back(nodes[i].symbol);
  return looked_at;
}

}  // namespace zoo
