#pragma once

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
  std::vector<std::int64_t> labels;  // one for each text
};

/// What can be said of texts by their words alone, in whatever order: what a model that reads has to be
/// better than. Learnt from `known`, said of `asked`; a word is a run of letters and digits, in lower case.
///   majority             the commonest class of all
///   naive_bayes          each word as likely as in the class, one occurrence added to all (McCallum and
///                        Nigam, 1998, the multinomial model)
///   logistic_regression  of the words' TF-IDF, each text of length 1, learnt by AdaGrad (Duchi et al., 2011)
/// The same for the same arguments. Throws c10::Error if `known` is empty or a label is out of range.
std::vector<WordPredictions> predict_by_words(const std::vector<LabelledText>& known,
                                              const std::vector<LabelledText>& asked, std::int64_t classes);

}  // namespace zoo
