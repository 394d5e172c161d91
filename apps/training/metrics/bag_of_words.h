#pragma once

/// @file
/// Use:
///
///     const auto guesses = zoo::predict_by_words(known, asked, /*classes=*/2);
///     for (const zoo::WordPredictions& each : guesses)
///       std::cout << each.name << ": " << each.labels[0] << "\n";

#include <cstdint>
#include <string>
#include <vector>

namespace zoo {

struct LabelledText {
  std::string text;
  std::int64_t label = 0;  // in [0, classes)
};

struct WordPredictions {
  std::string name;
  std::vector<std::int64_t> labels;  // one per text
};

/// Bag-of-words baselines: predict from the words of a text, in any order; a model must beat them.
/// Learns from `known`, predicts `asked`; a word is a run of letters and digits, in lower case.
///   majority             the most frequent class
///   naive_bayes          multinomial naive Bayes with add-one smoothing (McCallum and Nigam, 1998)
///   logistic_regression  on TF-IDF vectors of length 1, trained by AdaGrad (Duchi et al., 2011)
/// Deterministic. Throws c10::Error if `known` is empty or a label is out of range.
std::vector<WordPredictions> predict_by_words(const std::vector<LabelledText>& known,
                                              const std::vector<LabelledText>& asked, std::int64_t classes);

}  // namespace zoo
