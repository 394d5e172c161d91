#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/pipeline/byte_trie.h"
#include "tokenizer/text/utf8.h"

namespace zoo {

/// Finds the most probable segmentation of a text by a unigram language model (Kudo, 2018), with Viterbi's
/// algorithm. A float Score rounds sums as the sentencepiece library does.
template <class Score> class UnigramSegmentation {
 public:
  static constexpr Score kUnknownPenalty = 10;

  /// The last piece of the best segmentation of text[0, end).
  struct Step {
    Score score = 0;
    TokenId id = ByteTrie::kNoId;
    std::uint32_t begin = 0;
  };

  /// `trie` holds the ids of the pieces, scores[id] their log probabilities. A character that is no piece
  /// becomes `unknown`. Of equal scores the longest last piece wins.
  void find(const ByteTrie& trie, const std::vector<Score>& scores, Score unknown_score, TokenId unknown,
            std::string_view text);

  /// The ends of the pieces, in descending order.
  const std::vector<std::uint32_t>& ends() const { return ends_; }
  const Step& step(std::uint32_t end) const { return steps_[end]; }

 private:
  // Compares in double for any Score, as the library does.
  void offer(std::size_t end, double score, TokenId id, std::size_t begin) {
    Step& step = steps_[end];
    if (step.id != ByteTrie::kNoId && score <= step.score) return;
    step = {static_cast<Score>(score), id, static_cast<std::uint32_t>(begin)};
  }

  std::vector<Step> steps_;
  std::vector<std::uint32_t> ends_;
};

template <class Score>
void UnigramSegmentation<Score>::find(const ByteTrie& trie, const std::vector<Score>& scores,
                                      Score unknown_score, TokenId unknown, std::string_view text) {
  steps_.assign(text.size() + 1, {});
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t next = character_end(text, begin);
    const Score so_far = steps_[begin].score;
    bool is_known = false;
    ByteTrie::Node node = ByteTrie::kRoot;
    for (std::size_t at = begin; at < text.size();) {
      node = trie.child(node, static_cast<unsigned char>(text[at++]));
      if (node == ByteTrie::kNoNode) break;
      const TokenId id = trie.id(node);
      if (id == ByteTrie::kNoId) continue;
      offer(at, static_cast<double>(scores[static_cast<std::size_t>(id)]) + so_far, id, begin);
      is_known = is_known || at == next;
    }
    if (!is_known) offer(next, unknown_score + so_far, unknown, begin);
    begin = next;
  }
  ends_.clear();
  for (std::size_t end = text.size(); end > 0; end = steps_[end].begin)
    ends_.push_back(static_cast<std::uint32_t>(end));
}

}  // namespace zoo
