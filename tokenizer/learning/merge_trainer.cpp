#include "tokenizer/learning/merge_trainer.h"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <set>

#include "data/base/error.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

using PairKey = std::uint64_t;  // pair_key()

TokenId left_of(PairKey pair) { return static_cast<TokenId>(pair >> 32); }
TokenId right_of(PairKey pair) { return static_cast<TokenId>(pair & 0xFFFFFFFFu); }

/// A word of the text as its current tokens: symbols_[begin, begin + size).
struct TrainingWord {
  std::size_t begin;
  std::uint32_t size;
  std::int64_t count;
};

/// A pair that may be merged next. The count may be outdated; it is checked when the pair leaves the queue.
struct Candidate {
  std::int64_t count;
  PairKey pair;
  std::uint32_t words;  // index in words_of_

  // Smaller candidates leave the queue later.
  bool operator<(const Candidate& other) const {
    if (count != other.count) return count < other.count;
    return pair != other.pair ? pair > other.pair : words > other.words;
  }
};

class MergeLearner {
 public:
  MergeLearner(const WordCounts& words, const MergeTrainerOptions& options) : options_(options) {
    for (const std::string& token : options.special_tokens) id_of(token);
    add_alphabet(words);
    read_words(words);
    require_room();
    count_pairs();
  }

  LearntMerges learn() {
    const auto tokens = [this] { return static_cast<std::int64_t>(result_.tokens.size()); };
    while (tokens() < options_.vocab_size && !queue_.empty()) {
      Candidate best = queue_.top();
      queue_.pop();
      if (const std::int64_t count = *counts_.find(best.pair); count != best.count) {
        best.count = count;
        queue_.push(best);
        continue;
      }
      if (best.count < std::max<std::int64_t>(1, options_.min_frequency)) break;
      const TokenId merged = id_of(joined(best.pair));
      result_.merges.emplace_back(left_of(best.pair), right_of(best.pair));
      const std::vector<std::uint32_t> words = std::move(words_of_[best.words]);
      words_of_[best.words] = {};
      for (const std::uint32_t word : words) merge_in(word, best.pair, merged);
      queue_new_pairs();
      if (options_.on_progress) options_.on_progress("tokens", tokens(), options_.vocab_size);
    }
    return std::move(result_);
  }

 private:
  std::map<char32_t, std::int64_t> count_characters(const WordCounts& words) const {
    std::map<char32_t, std::int64_t> counts;
    for (const auto& [word, count] : words) {
      for (std::size_t at = 0; at < word.size();) counts[next_code_point(word, at)] += count;
    }
    for (const char32_t c : options_.initial_alphabet) counts[c] = std::numeric_limits<std::int64_t>::max();
    return counts;
  }

  void add_alphabet(const WordCounts& words) {
    const std::map<char32_t, std::int64_t> counts = count_characters(words);
    std::vector<std::pair<char32_t, std::int64_t>> kept(counts.begin(), counts.end());
    if (options_.limit_alphabet && kept.size() > static_cast<std::size_t>(*options_.limit_alphabet)) {
      std::ranges::stable_sort(kept, [](auto& a, auto& b) { return a.second > b.second; });
      kept.resize(static_cast<std::size_t>(*options_.limit_alphabet));
      std::ranges::sort(kept);
    }
    for (const auto& [character, count] : kept) {
      alphabet_.insert(character);
      id_of(utf8_of(character));
    }
  }

  void require_room() const {
    if (static_cast<std::int64_t>(result_.tokens.size()) <= options_.vocab_size) return;
    throw Error("vocab_size ", options_.vocab_size, " has no room for the ", options_.special_tokens.size(),
                " special tokens and ", alphabet_.size(), " characters: expected ", result_.tokens.size(),
                " or more");
  }

  void read_words(const WordCounts& words) {
    const std::string& prefix = options_.continuing_subword_prefix;
    if (!prefix.empty()) {
      std::set<char32_t> inside;
      for (const auto& [word, count] : words) {
        for (std::size_t at = word.empty() ? 0 : character_end(word, 0); at < word.size();)
          inside.insert(next_code_point(word, at));
      }
      for (const char32_t c : inside)
        if (alphabet_.contains(c)) id_of(prefix + utf8_of(c));
    }
    std::string text;
    for (const auto& [word, count] : words) {
      const std::size_t begin = symbols_.size();
      for (std::size_t at = 0; at < word.size();) {
        text = at == 0 ? "" : prefix;
        const char32_t c = next_code_point(word, at);
        append_utf8(text, c);
        if (alphabet_.contains(c)) symbols_.push_back(ids_.at(text));
      }
      words_.push_back({begin, static_cast<std::uint32_t>(symbols_.size() - begin), count});
    }
  }

  void count_pairs() {
    for (std::uint32_t i = 0; i < words_.size(); ++i) {
      const auto [begin, size, count] = words_[i];
      for (std::size_t at = begin; at + 1 < begin + size; ++at) {
        const PairKey pair = pair_key(symbols_[at], symbols_[at + 1]);
        counts_[pair] += count;
        add_new_pair(pair, i);
      }
    }
    queue_new_pairs();
  }

  void add_new_pair(PairKey pair, std::uint32_t word) {
    if (new_pairs_.find(pair) == nullptr) {
      new_pairs_[pair] = static_cast<std::uint32_t>(words_of_.size());
      new_pair_list_.push_back(pair);
      words_of_.emplace_back();
    }
    std::vector<std::uint32_t>& words = words_of_[*new_pairs_.find(pair)];
    if (words.empty() || words.back() != word) words.push_back(word);
  }

  void queue_new_pairs() {
    for (const PairKey pair : new_pair_list_) {
      const std::int64_t count = *counts_.find(pair);
      if (count > 0) queue_.push({count, pair, *new_pairs_.find(pair)});
    }
    new_pair_list_.clear();
    new_pairs_ = FlatTable<std::uint32_t>();
  }

  // Changes only the counts of neighbouring pairs. As in `tokenizers`, the pair's own count stays, and the
  // pair can be merged again in words where it formed later.
  void merge_in(std::uint32_t word, PairKey pair, TokenId merged) {
    TrainingWord& place = words_[word];
    TokenId* const symbols = symbols_.data() + place.begin;
    std::uint32_t out = 0;
    for (std::uint32_t in = 0; in < place.size; ++in, ++out) {
      symbols[out] = symbols[in];
      if (in + 1 == place.size || pair_key(symbols[in], symbols[in + 1]) != pair) continue;
      symbols[out] = merged;
      ++in;
      if (out > 0) {
        counts_[pair_key(symbols[out - 1], left_of(pair))] -= place.count;
        counts_[pair_key(symbols[out - 1], merged)] += place.count;
        add_new_pair(pair_key(symbols[out - 1], merged), word);
      }
      if (in + 1 < place.size) {
        counts_[pair_key(right_of(pair), symbols[in + 1])] -= place.count;
        counts_[pair_key(merged, symbols[in + 1])] += place.count;
        add_new_pair(pair_key(merged, symbols[in + 1]), word);
      }
    }
    place.size = out;
  }

  std::string joined(PairKey pair) const {
    const std::string& right = result_.tokens[static_cast<std::size_t>(right_of(pair))];
    const std::string& prefix = options_.continuing_subword_prefix;
    return result_.tokens[static_cast<std::size_t>(left_of(pair))] +
           (right.starts_with(prefix) ? right.substr(prefix.size()) : right);
  }

  TokenId id_of(const std::string& token) {
    const auto [entry, is_new] = ids_.emplace(token, static_cast<TokenId>(result_.tokens.size()));
    if (is_new) result_.tokens.push_back(token);
    return entry->second;
  }

  const MergeTrainerOptions& options_;
  LearntMerges result_;
  std::unordered_map<std::string, TokenId> ids_;
  std::set<char32_t> alphabet_;

  std::vector<TrainingWord> words_;
  TokenIds symbols_;
  FlatTable<std::int64_t> counts_;

  // New pairs of the current merge, with their indices in words_of_.
  FlatTable<std::uint32_t> new_pairs_;
  std::vector<PairKey> new_pair_list_;
  std::vector<std::vector<std::uint32_t>> words_of_;
  std::priority_queue<Candidate> queue_;
};

}  // namespace

LearntMerges learn_merges(const WordCounts& words, const MergeTrainerOptions& options) {
  return MergeLearner(words, options).learn();
}

}  // namespace zoo
