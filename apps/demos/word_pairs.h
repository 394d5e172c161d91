#pragma once

#include "apps/demos/demo.h"

namespace zoo {

/// The tutorial's words: animals, fruits and context words.
constexpr const char* kTutorialPairs =
    "cat strolls,cat eats,cat walks,cat runs,dog runs,dog eats,dog likes,dog walks,apple fruit,apple sweet,"
    "apple kitchen,banana fruit,banana ripe,banana kitchen";

/// Pairs of words; each word predicts the other.
struct WordPairs {
  WordIds ids;
  at::Tensor inputs, targets;  // [2 * pairs, 1]
};

/// Throws UsageError naming --pairs for text that is not a pair.
WordPairs read_word_pairs(const std::string& text);

struct WordTraining {
  std::int64_t width = 2, epochs = 300;
  double learning_rate = 0.02;
  std::uint64_t seed = 123;
};

/// The trained vectors [V, width] of the tutorial's model; `on_epoch` gets each loss.
at::Tensor learn_word_vectors(const WordPairs& pairs, const WordTraining& how,
                              const std::function<void(std::int64_t epoch, double loss)>& on_epoch = {});

}  // namespace zoo
