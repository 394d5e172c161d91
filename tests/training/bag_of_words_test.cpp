#include "apps/training/metrics/bag_of_words.h"

#include "tests/support/catch.h"

using zoo::LabelledText;
using zoo::predict_by_words;

namespace {

using Labels = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("Naive Bayes is that of the textbook") {
  // Manning, Raghavan and Schütze (2008), example 13.1: 0.0003 against 0.0001. Without the occurrence that is
  // added to all, Tokyo and Japan would exclude class 1.
  const std::vector<LabelledText> known{{"Chinese Beijing Chinese", 1},
                                        {"Chinese Chinese Shanghai", 1},
                                        {"Chinese Macao", 1},
                                        {"Tokyo Japan Chinese", 0}};
  const auto said =
      predict_by_words(known, {{"Chinese Chinese Chinese, TOKYO; Japan!"}, {"Tokyo Japan"}, {"Osaka"}}, 2);
  REQUIRE(said.size() == 3);
  CHECK(said[0].name == "majority");
  CHECK(said[0].labels == Labels{1, 1, 1});
  CHECK(said[1].name == "naive_bayes");
  // Tokyo Japan: 1/4 * 2/9 * 2/9 against 3/4 * 1/14 * 1/14. A new word leaves the classes' own shares.
  CHECK(said[1].labels == Labels{1, 0, 1});
}

TEST_CASE("Logistic regression finds the words that decide among those that all texts have") {
  std::vector<LabelledText> known;
  for (int i = 0; i < 30; ++i) {
    const std::string number = std::to_string(i);
    known.push_back({"and it came to pass that the ark went " + number, 0});
    known.push_back({"and it came to pass that the king went " + number, 1});
    known.push_back({"and it came to pass that the boat went, and the boat " + number, 2});
  }
  const auto said = predict_by_words(known, {{"the Ark came"}, {"and the king"}, {"it went, the boat"}}, 3);
  CHECK(said[2].name == "logistic_regression");
  CHECK(said[2].labels == Labels{0, 1, 2});
}

TEST_CASE("Without texts, or with labels that are none, nothing is learnt") {
  CHECK_THROWS_WITH(predict_by_words({}, {}, 2), Catch::Contains("no text"));
  CHECK_THROWS_WITH(predict_by_words({{"a", 2}}, {}, 2), Catch::Contains("label 2"));
}
