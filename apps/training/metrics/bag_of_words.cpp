#include "apps/training/metrics/bag_of_words.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>

#include <c10/util/Exception.h>

#include "data/random/random_stream.h"

namespace zoo {
namespace {

constexpr int kEpochs = 10;
constexpr double kStep = 0.5;

/// Word indices with their counts in a text or their weights.
using Bag = std::vector<std::pair<std::size_t, double>>;

bool is_word_letter(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 128 || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

class Vocabulary {
 public:
  /// The words of a text and their counts. New words get an index if `learns`; otherwise they are skipped.
  Bag bag_of(const std::string& text, bool learns) {
    std::string letters = text;
    std::transform(letters.begin(), letters.end(), letters.begin(), lower);
    std::vector<std::size_t> numbers;
    for (auto at = letters.begin(); at != letters.end();) {
      const auto begin = std::find_if(at, letters.end(), is_word_letter);
      at = std::find_if_not(begin, letters.end(), is_word_letter);
      if (begin != at) add(std::string(begin, at), learns, numbers);
    }
    std::sort(numbers.begin(), numbers.end());
    Bag bag;
    for (const std::size_t number : numbers) {
      if (bag.empty() || bag.back().first != number) bag.emplace_back(number, 0.0);
      bag.back().second += 1;
    }
    return bag;
  }

  std::size_t size() const { return numbers_.size(); }

 private:
  void add(const std::string& word, bool learns, std::vector<std::size_t>& numbers) {
    const auto found = numbers_.find(word);
    if (found != numbers_.end()) {
      numbers.push_back(found->second);
    } else if (learns) {
      numbers.push_back(numbers_.size());
      numbers_.emplace(word, numbers_.size());
    }
  }

  std::unordered_map<std::string, std::size_t> numbers_;
};

std::int64_t best_of(const std::vector<double>& scores) {
  return std::max_element(scores.begin(), scores.end()) - scores.begin();
}

/// One weight per class and word; the sum over a bag is the class's score.
class Weights {
 public:
  Weights(std::size_t words, std::size_t classes) : classes_(classes), numbers_(words * classes) {}

  double* of(std::size_t word) { return numbers_.data() + word * classes_; }
  std::vector<double> scores(const Bag& bag, std::vector<double> start) const {
    for (const auto& [word, count] : bag) {
      const double* row = numbers_.data() + word * classes_;
      for (std::size_t c = 0; c < classes_; ++c) start[c] += count * row[c];
    }
    return start;
  }

 private:
  std::size_t classes_;
  std::vector<double> numbers_;
};

/// Bags with their class labels.
struct Bags {
  std::vector<Bag> bags;
  std::vector<std::size_t> labels;
  std::size_t words = 0, classes = 0;
};

std::vector<double> class_counts(const Bags& known) {
  std::vector<double> counts(known.classes);
  for (const std::size_t label : known.labels) ++counts[label];
  return counts;
}

std::vector<std::int64_t> by_naive_bayes(const Bags& known, const std::vector<Bag>& asked) {
  Weights logarithms(known.words, known.classes);
  std::vector<double> all(known.classes, static_cast<double>(known.words)), prior = class_counts(known);
  for (std::size_t i = 0; i < known.bags.size(); ++i) {
    for (const auto& [word, count] : known.bags[i]) {
      logarithms.of(word)[known.labels[i]] += count;
      all[known.labels[i]] += count;
    }
  }
  for (std::size_t c = 0; c < known.classes; ++c) {
    prior[c] = std::log(prior[c] / static_cast<double>(known.bags.size()));
    for (std::size_t word = 0; word < known.words; ++word)
      logarithms.of(word)[c] = std::log((logarithms.of(word)[c] + 1) / all[c]);
  }
  std::vector<std::int64_t> labels;
  for (const Bag& bag : asked) labels.push_back(best_of(logarithms.scores(bag, prior)));
  return labels;
}

// Inverse document frequency, with n of N texts containing the word: log((1 + N) / (1 + n)) + 1.
std::vector<double> rarities(const Bags& known) {
  std::vector<double> texts(known.words);
  for (const Bag& bag : known.bags) {
    for (const auto& entry : bag) ++texts[entry.first];
  }
  for (double& count : texts)
    count = std::log((1.0 + static_cast<double>(known.bags.size())) / (1.0 + count)) + 1;
  return texts;
}

Bag weighed(Bag bag, const std::vector<double>& rarity) {
  double square = 0;
  for (auto& [word, count] : bag) {
    count = (1 + std::log(count)) * rarity[word];
    square += count * count;
  }
  for (auto& entry : bag) entry.second /= std::sqrt(square);
  return bag;
}

class LogisticRegression {
 public:
  explicit LogisticRegression(const Bags& known)
      : classes_(known.classes),
        weights_(known.words + 1, classes_),
        squares_(known.words + 1, classes_),
        constant_(known.words),
        rarity_(rarities(known)) {
    std::vector<Bag> bags;
    for (const Bag& bag : known.bags) bags.push_back(with_constant(bag));
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
      RandomStream random(/*seed=*/0, {.step = epoch});
      for (const std::int64_t i : random.permutation(static_cast<std::int64_t>(bags.size())))
        learn(bags[static_cast<std::size_t>(i)], known.labels[static_cast<std::size_t>(i)]);
    }
  }

  std::int64_t label_of(const Bag& bag) const { return best_of(scores(with_constant(bag))); }

 private:
  Bag with_constant(const Bag& bag) const {
    Bag result = weighed(bag, rarity_);
    result.emplace_back(constant_, 1.0);
    return result;
  }

  std::vector<double> scores(const Bag& bag) const {
    return weights_.scores(bag, std::vector<double>(classes_));
  }

  void learn(const Bag& bag, std::size_t label) {
    std::vector<double> error = scores(bag);  // of the probabilities, the softmax of the scores
    const double highest = *std::max_element(error.begin(), error.end());
    double sum = 0;
    for (double& score : error) sum += score = std::exp(score - highest);
    for (double& score : error) score /= sum;
    error[label] -= 1;
    for (const auto& [word, count] : bag) {
      for (std::size_t c = 0; c < classes_; ++c) {
        const double gradient = error[c] * count;
        double& square = squares_.of(word)[c];
        square += gradient * gradient;
        if (square > 0) weights_.of(word)[c] -= kStep * gradient / std::sqrt(square);
      }
    }
  }

  std::size_t classes_;
  Weights weights_, squares_;
  std::size_t constant_;
  std::vector<double> rarity_;
};

}  // namespace

std::vector<WordPredictions> predict_by_words(const std::vector<LabelledText>& known,
                                              const std::vector<LabelledText>& asked, std::int64_t classes) {
  TORCH_CHECK(!known.empty(), "there is no text to learn from");
  Vocabulary vocabulary;
  Bags bags;
  bags.classes = static_cast<std::size_t>(classes);
  for (const LabelledText& example : known) {
    TORCH_CHECK(example.label >= 0 && example.label < classes, "label ", example.label, " is not in [0, ",
                classes, ")");
    bags.bags.push_back(vocabulary.bag_of(example.text, /*learns=*/true));
    bags.labels.push_back(static_cast<std::size_t>(example.label));
  }
  bags.words = vocabulary.size();
  std::vector<Bag> questions;
  for (const LabelledText& example : asked) questions.push_back(vocabulary.bag_of(example.text, false));

  const std::int64_t commonest = best_of(class_counts(bags));
  const LogisticRegression regression(bags);
  std::vector<WordPredictions> predictions{{"majority", std::vector<std::int64_t>(asked.size(), commonest)},
                                           {"naive_bayes", by_naive_bayes(bags, questions)},
                                           {"logistic_regression", {}}};
  for (const Bag& bag : questions) predictions.back().labels.push_back(regression.label_of(bag));
  return predictions;
}

}  // namespace zoo
