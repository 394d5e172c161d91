#include "tokenizer/constraint/byte_automaton.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>

#include "data/base/error.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

constexpr std::size_t kMostNodes = 400000, kMostStates = 65536;  // 306 for each of Python's \w
constexpr std::size_t kMostParts = 10 * kMostNodes;  // of the construction: parts added and joined
constexpr std::size_t kMostVisits = 100'000'000;     // of nodes, in all closures: half a second
constexpr std::size_t kMostMembers = 10'000'000;     // of the sets of all states

[[noreturn]] void refuse_size(std::size_t most, const char* of) {
  throw Error("the constraint's automaton is too large, with more than ", most, " ", of,
              ": lower its counts or simplify it; sets of few characters, such as [a-z], are smaller than "
              "those of all scripts, such as Python's \\w");
}

// A node of the nondeterministic automaton: free edges consume no byte.
struct Node {
  std::vector<std::int32_t> free;
  struct Edge {
    unsigned char first, last;
    std::int32_t to;
  };
  std::vector<Edge> edges;
};

// Thompson's construction (1968): each part leads from one node to another.
class Builder {
 public:
  std::int32_t add_node() {
    if (nodes.size() >= kMostNodes) refuse_size(kMostNodes, "nodes");
    nodes.emplace_back();
    return static_cast<std::int32_t>(nodes.size() - 1);
  }

  void join(std::int32_t from, std::int32_t to) {
    count_step();
    at(from).free.push_back(to);
  }

  /// Adds the pattern from node `from`; returns the node where it ends.
  std::int32_t add(const Pattern& pattern, std::int32_t from) {
    count_step();
    switch (pattern.kind) {
      case Pattern::Kind::kCharacters: {
        const std::int32_t to = add_node();
        endings_.clear();
        for (const auto& [first, last] : pattern.characters) add_range(first, last, from, to);
        return to;
      }
      case Pattern::Kind::kSequence:
        for (const PatternPtr& part : pattern.parts) from = add(*part, from);
        return from;
      case Pattern::Kind::kChoice: {
        const std::int32_t to = add_node();
        for (const PatternPtr& part : pattern.parts) {
          const std::int32_t begin = add_node();
          join(from, begin);
          join(add(*part, begin), to);
        }
        return to;
      }
      case Pattern::Kind::kRepeat: return add_repeat(pattern, from);
      case Pattern::Kind::kBoth: return add_both(pattern, from);
    }
    return from;
  }

  std::vector<Node> nodes;

 private:
  Node& at(std::int32_t node) { return nodes[static_cast<std::size_t>(node)]; }

  // Some parts add no node, however often they are repeated.
  void count_step() {
    if (++steps_ > kMostParts) refuse_size(kMostParts, "parts");
  }

  std::int32_t add_repeat(const Pattern& pattern, std::int32_t from) {
    const Pattern& part = *pattern.parts[0];
    for (int i = 0; i < pattern.least; ++i) from = add(part, from);
    if (pattern.most == Pattern::kEndless) {
      const std::int32_t begin = add_node();
      join(from, begin);
      join(add(part, begin), begin);
      return begin;
    }
    const std::int32_t to = add_node();
    for (int i = pattern.least; i < pattern.most; ++i) {
      join(from, to);
      from = add(part, from);
    }
    join(from, to);
    return to;
  }

  // The product of two automata: a node for each pair of nodes that one text reaches.
  std::int32_t add_both(const Pattern& pattern, std::int32_t from) {
    Builder a, b;
    const std::int32_t begin_a = a.add_node(), end_a = a.add(*pattern.parts[0], begin_a);
    const std::int32_t begin_b = b.add_node(), end_b = b.add(*pattern.parts[1], begin_b);
    using Pair = std::pair<std::int32_t, std::int32_t>;
    std::map<Pair, std::int32_t> known{{{begin_a, begin_b}, from}};
    std::vector<Pair> open{{begin_a, begin_b}};
    const auto node_of = [&](std::int32_t in_a, std::int32_t in_b) {
      const auto [entry, is_new] = known.try_emplace({in_a, in_b}, -1);
      if (is_new) {
        entry->second = add_node();
        open.push_back(entry->first);
      }
      return entry->second;
    };
    for (std::size_t i = 0; i < open.size(); ++i) {
      const auto [in_a, in_b] = open[i];
      const std::int32_t node = known[open[i]];
      for (const std::int32_t to : a.at(in_a).free) join(node, node_of(to, in_b));
      for (const std::int32_t to : b.at(in_b).free) join(node, node_of(in_a, to));
      for (const Node::Edge& x : a.at(in_a).edges) {
        for (const Node::Edge& y : b.at(in_b).edges) {
          const unsigned char first = std::max(x.first, y.first), last = std::min(x.last, y.last);
          if (first > last) continue;
          const std::int32_t to = node_of(x.to, y.to);
          at(node).edges.push_back({first, last, to});
        }
      }
    }
    return node_of(end_a, end_b);
  }

  // Splits the code points until each byte of the UTF-8 is an independent range.
  void add_range(char32_t first, char32_t last, std::int32_t from, std::int32_t to) {
    for (const char32_t end : {char32_t{0x7F}, char32_t{0x7FF}, char32_t{0xFFFF}}) {
      if (first > end || last <= end) continue;
      add_range(first, end, from, to);
      return add_range(end + 1, last, from, to);
    }
    for (int bits = 6; bits <= 18 && last > 0x7F; bits += 6) {
      const char32_t low = (char32_t{1} << bits) - 1;
      if ((first & ~low) == (last & ~low)) continue;
      if ((first & low) != 0) {
        add_range(first, first | low, from, to);
        return add_range((first | low) + 1, last, from, to);
      }
      if ((last & low) != low) {
        add_range(first, (last & ~low) - 1, from, to);
        return add_range(last & ~low, last, from, to);
      }
    }
    const std::string begin = utf8_of(first), end = utf8_of(last);
    for (std::size_t i = begin.size() - 1; i > 0; --i) {
      const Node::Edge edge{static_cast<unsigned char>(begin[i]), static_cast<unsigned char>(end[i]), to};
      std::int32_t& node = endings_[{edge.first, edge.last, to}];
      if (node == 0) at(node = add_node()).edges.push_back(edge);
      to = node;
    }
    at(from).edges.push_back({static_cast<unsigned char>(begin[0]), static_cast<unsigned char>(end[0]), to});
  }

  // Nodes inside characters by their only edge: a set's characters share equal endings.
  std::map<std::array<std::int32_t, 3>, std::int32_t> endings_;
  std::size_t steps_ = 0;
};

using NodeSet = std::vector<std::int32_t>;  // sorted, without repeats

struct NodeSetHash {
  std::size_t operator()(const NodeSet& set) const {
    return std::hash<std::string_view>()(
        {reinterpret_cast<const char*>(set.data()), set.size() * sizeof(std::int32_t)});
  }
};

// Epsilon closure, without nodes that only join others and nodes that cannot reach the end.
class Closure {
 public:
  Closure(const std::vector<Node>& nodes, std::int32_t end)
      : nodes_(nodes), end_(end), seen_(nodes.size(), 0) {
    std::vector<std::vector<std::int32_t>> forward;
    for (const Node& node : nodes) {
      forward.push_back(node.free);
      for (const Node::Edge& edge : node.edges) forward.back().push_back(edge.to);
    }
    distances_ = distances_to({end}, forward);
  }

  NodeSet of(NodeSet open) {
    ++round_;
    NodeSet found;
    spend(open.size());
    while (!open.empty()) {
      const std::int32_t number = open.back();
      const auto place = static_cast<std::size_t>(number);
      open.pop_back();
      if (seen_[place] == round_ || distances_[place] == kUnreachable) continue;
      seen_[place] = round_;
      const Node& node = nodes_[place];
      if (!node.edges.empty() || number == end_) found.push_back(number);
      spend(node.free.size());
      open.insert(open.end(), node.free.begin(), node.free.end());
    }
    std::ranges::sort(found);
    return found;
  }

 private:
  void spend(std::size_t visits) {
    visits_ += visits;
    if (visits_ > kMostVisits) refuse_size(kMostVisits, "steps between its nodes");
  }

  const std::vector<Node>& nodes_;
  std::int32_t end_;
  std::vector<std::int64_t> distances_;
  std::vector<std::int64_t> seen_;  // the round in which each node was seen
  std::int64_t round_ = 0;
  std::size_t visits_ = 0;
};

// Classes of bytes that no edge distinguishes.
struct ByteClasses {
  std::array<std::size_t, 256> of{};
  std::size_t count = 1;

  ByteClasses(const std::vector<Node>& nodes, const NodeSet& set) {
    std::array<bool, 257> begins{};
    for (const std::int32_t node : set)
      for (const auto& edge : nodes[static_cast<std::size_t>(node)].edges)
        begins[edge.first] = begins[edge.last + std::size_t{1}] = true;
    for (std::size_t byte = 0; byte < of.size(); ++byte) {
      if (byte > 0 && begins[byte]) ++count;
      of[byte] = count - 1;
    }
  }
};

}  // namespace

ByteAutomaton::ByteAutomaton(const PatternPtr& pattern) {
  Builder builder;
  const std::int32_t begin = builder.add_node(), end = builder.add(*pattern, begin);
  const std::vector<Node>& nodes = builder.nodes;
  Closure closure(nodes, end);
  std::unordered_map<NodeSet, State, NodeSetHash> known;
  std::vector<const NodeSet*> sets;
  std::size_t members = 0;
  const auto state_of = [&](const NodeSet& set) {
    if (set.empty()) return kDead;
    const auto [entry, is_new] = known.emplace(set, static_cast<State>(sets.size()));
    if (is_new) {
      sets.push_back(&entry->first);
      members += set.size();
    }
    if (sets.size() > kMostStates) refuse_size(kMostStates, "states");
    if (members > kMostMembers) refuse_size(kMostMembers, "nodes in its states");
    return entry->second;
  };
  if (state_of(closure.of({begin})) == kDead)
    throw Error("no text fits the constraint: its patterns and lengths exclude one another");
  for (std::size_t i = 0; i < sets.size(); ++i) {
    Row row;
    row.accepts = std::binary_search(sets[i]->begin(), sets[i]->end(), end);
    const ByteClasses classes(nodes, *sets[i]);
    std::vector<NodeSet> reached(classes.count);
    for (const std::int32_t node : *sets[i]) {
      for (const auto& edge : nodes[static_cast<std::size_t>(node)].edges) {
        for (std::size_t of = classes.of[edge.first]; of <= classes.of[edge.last]; ++of)
          reached[of].push_back(edge.to);
      }
    }
    std::vector<State> states;
    for (std::size_t of = 0; of < reached.size(); ++of) {
      const auto alike = std::ranges::find(reached, reached[of]);
      const auto first = static_cast<std::size_t>(alike - reached.begin());
      states.push_back(first < of ? states[first] : state_of(closure.of(reached[of])));
    }
    for (std::size_t byte = 0; byte < row.next.size(); ++byte) row.next[byte] = states[classes.of[byte]];
    states_.push_back(row);
  }
}

bool ByteAutomaton::fits(std::string_view text) const {
  State state = begin();
  for (std::size_t i = 0; i < text.size() && state != kDead; ++i)
    state = next(state, static_cast<unsigned char>(text[i]));
  return state != kDead && accepts(state);
}

std::vector<std::int64_t> distances_to(std::vector<std::int32_t> ends,
                                       const std::vector<std::vector<std::int32_t>>& forward) {
  std::vector<std::vector<std::int32_t>> back(forward.size());
  for (std::size_t n = 0; n < forward.size(); ++n)
    for (const std::int32_t to : forward[n])
      back[static_cast<std::size_t>(to)].push_back(static_cast<std::int32_t>(n));
  std::vector<std::int64_t> distances(forward.size(), kUnreachable);
  for (const std::int32_t end : ends) distances[static_cast<std::size_t>(end)] = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const auto to = static_cast<std::size_t>(ends[i]);
    for (const std::int32_t from : back[to]) {
      std::int64_t& distance = distances[static_cast<std::size_t>(from)];
      if (distance != kUnreachable) continue;
      distance = distances[to] + 1;
      ends.push_back(from);
    }
  }
  return distances;
}

}  // namespace zoo
