#include "data/tokens/masking.h"

#include <algorithm>
#include <cmath>

namespace zoo {
namespace {

using Action = TokenMask::Action;

TokenMask draw_action(const MaskingOptions& options, RandomStream& random) {
  const double share = random.uniform();
  // Always drawn, so that the next token's draws do not depend on this one's action.
  const auto id = static_cast<TokenId>(random.below(static_cast<std::uint64_t>(options.vocab_size)));
  if (share < options.mask_share) return {Action::kMask, id};
  return {share < options.mask_share + options.random_share ? Action::kRandom : Action::kKeep, id};
}

struct Word {
  std::size_t begin, end;
};

std::vector<Word> find_words(std::span<const std::int32_t> words) {
  std::vector<Word> found;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] < 0) continue;
    const bool continues = !found.empty() && found.back().end == i && words[i - 1] == words[i];
    if (continues) {
      ++found.back().end;
    } else {
      found.push_back({i, i + 1});
    }
  }
  return found;
}

std::vector<bool> choose_words(std::span<const std::int32_t> words, const MaskingOptions& options,
                               RandomStream& random) {
  const std::vector<Word> candidates = find_words(words);
  std::size_t tokens = 0;
  for (const Word& word : candidates) tokens += word.end - word.begin;
  const auto wanted = static_cast<std::size_t>(
      std::max(1.0, std::nearbyint(static_cast<double>(tokens) * options.probability)));
  std::vector<bool> chosen(words.size());
  std::size_t count = 0;
  for (const std::int64_t i : random.permutation(static_cast<std::int64_t>(candidates.size()))) {
    const Word& word = candidates[static_cast<std::size_t>(i)];
    if (count + (word.end - word.begin) > wanted) continue;
    count += word.end - word.begin;
    std::fill(chosen.begin() + static_cast<std::ptrdiff_t>(word.begin),
              chosen.begin() + static_cast<std::ptrdiff_t>(word.end), true);
  }
  return chosen;
}

}  // namespace

std::vector<TokenMask> draw_masks(std::span<const std::int32_t> words, const MaskingOptions& options,
                                  RandomStream& random) {
  std::vector<bool> chosen(words.size());
  if (options.whole_words) {
    chosen = choose_words(words, options, random);
  } else {
    for (std::size_t i = 0; i < words.size(); ++i)
      if (words[i] >= 0) chosen[i] = random.uniform() < options.probability;
  }
  std::vector<TokenMask> masks(words.size());
  for (std::size_t i = 0; i < words.size(); ++i)
    if (chosen[i]) masks[i] = draw_action(options, random);
  return masks;
}

void apply_masks(std::span<const TokenMask> masks, TokenId mask_id, std::span<std::int64_t> ids,
                 std::span<std::int64_t> labels) {
  for (std::size_t i = 0; i < masks.size(); ++i) {
    labels[i] = masks[i].action == Action::kNone ? -100 : ids[i];
    if (masks[i].action == Action::kMask) ids[i] = mask_id;
    if (masks[i].action == Action::kRandom) ids[i] = masks[i].random_id;
  }
}

}  // namespace zoo
