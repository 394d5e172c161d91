#include "data/examples/generators.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "data/corpora/sha256.h"
#include "data/examples/question_file.h"
#include "data/examples/record_file.h"
#include "data/examples/tagged_file.h"
#include "tests/data/support.h"

using zoo::make_toy_set;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The right side of each line is `expected(left side)`.
template <class Expected> void check_lines(const std::string& name, Expected expected) {
  const std::string text = make_toy_set(name, 500, 3);
  REQUIRE(text.back() == '\n');
  const auto lines = lines_of(text);
  REQUIRE(lines.size() == 500);
  std::vector<std::size_t> lengths(9);
  for (const std::string& line : lines) {
    INFO(line);
    const std::size_t middle = line.find(" > ");
    REQUIRE(middle != std::string::npos);
    const std::string left = line.substr(0, middle);
    REQUIRE(left.find_first_not_of("0123456789 ") == std::string::npos);
    REQUIRE(left.size() <= 15);
    CHECK(line.substr(middle + 3) == expected(left));
    ++lengths[(left.size() + 1) / 2];
  }
  for (std::size_t length = 1; length <= 8; ++length) CHECK(lengths[length] > 30);
}

}  // namespace

TEST_CASE("the copy set repeats its left side") {
  check_lines("copy", [](const std::string& left) { return left; });
}

TEST_CASE("the reverse set reverses its left side") {
  check_lines("reverse", [](const std::string& left) { return std::string(left.rbegin(), left.rend()); });
}

TEST_CASE("the sort set puts the digits in order") {
  check_lines("sort", [](const std::string& left) {
    std::vector<std::string> digits;
    std::istringstream stream(left);
    for (std::string digit; stream >> digit;) digits.push_back(digit);
    std::sort(digits.begin(), digits.end());
    std::string text;
    for (const std::string& digit : digits) text += (text.empty() ? "" : " ") + digit;
    return text;
  });
}

TEST_CASE("the addition set holds true sums of numbers below 100") {
  const auto lines = lines_of(make_toy_set("addition", 2000, 5));
  REQUIRE(lines.size() == 2000);
  int largest = 0, smallest = 1000;
  for (const std::string& line : lines) {
    INFO(line);
    std::istringstream stream(line);
    int a = -1, b = -1, sum = -1;
    char plus = 0, equals = 0;
    stream >> a >> plus >> b >> equals >> sum;
    CHECK(line == std::to_string(a) + "+" + std::to_string(b) + "=" + std::to_string(a + b));
    CHECK(sum == a + b);
    largest = std::max({largest, a, b});
    smallest = std::min({smallest, a, b});
  }
  CHECK(largest == 99);
  CHECK(smallest == 0);
}

TEST_CASE("a toy set is a pure function of name, count and seed") {
  CHECK(make_toy_set("sort", 50, 1) == make_toy_set("sort", 50, 1));
  CHECK(make_toy_set("sort", 50, 1) != make_toy_set("sort", 50, 2));
  const std::string longer = make_toy_set("sort", 60, 1);
  CHECK(longer.starts_with(make_toy_set("sort", 50, 1)));
  // Computed in Python with another Philox.
  CHECK(make_toy_set("addition", 3, 42) == "46+32=78\n12+99=111\n52+88=140\n");
  CHECK(zoo::sha256(make_toy_set("addition", 1000, 42)) ==
        "5eae62ddbec6f9ebebff7a999534328e3b59e1b0fb988ffd142bb7164c9f247e");
}

TEST_CASE("an unknown toy set or a count out of range is an error") {
  using zoo::test::message_of;
  CHECK_THAT(message_of([] { make_toy_set("revers", 1, 0); }),
             Catch::Contains("'revers'") && Catch::Contains("did you mean 'reverse'?") &&
                 Catch::Contains("copy, reverse, sort, addition"));
  CHECK_THAT(message_of([] { make_toy_set("copy", 0, 0); }),
             Catch::Contains("'count'") && Catch::Contains("found 0"));
  CHECK_THAT(message_of([] { make_toy_set("copy", 10'000'001, 0); }), Catch::Contains("10000000"));
}

TEST_CASE("the tables of examples are what the readers of examples read") {
  const auto reviews =
      zoo::parse_records(make_toy_set("reviews", 200, 1), "reviews.tsv", {{"text", "label"}});
  REQUIRE(reviews.size() == 200);
  std::set<std::string> labels;
  for (const auto& review : reviews) labels.insert(review.fields[1]);
  CHECK(labels == std::set<std::string>{"negative", "positive"});

  const auto sentences = zoo::parse_tagged(make_toy_set("names", 200, 1), "names.tsv");
  REQUIRE(sentences.size() == 200);
  std::set<std::string> tags;
  for (const auto& sentence : sentences) tags.insert(sentence.tags.begin(), sentence.tags.end());
  CHECK(tags == std::set<std::string>{"B-LOC", "B-PER", "I-LOC", "I-PER", "O"});

  const auto questions = zoo::parse_questions(make_toy_set("questions", 200, 1), "questions.tsv");
  REQUIRE(questions.size() == 200);
  for (const auto& question : questions) CHECK(question.answer.begin < question.answer.end);
}

TEST_CASE("pairs have a tab where lines have a sign") {
  CHECK(zoo::make_toy_pairs("reverse", 1, 3).find('\t') == make_toy_set("reverse", 1, 3).find(" > "));
  CHECK(zoo::make_toy_pairs("addition", 1, 3).find('\t') == make_toy_set("addition", 1, 3).find('='));
}

namespace {

std::map<std::string, std::string> translations(const std::string& name, std::int64_t count) {
  std::map<std::string, std::string> found;
  for (const std::string& line : lines_of(make_toy_set(name, count, 1))) {
    const std::size_t tab = line.find('\t');
    REQUIRE(tab != std::string::npos);
    const auto [at, fresh] = found.emplace(line.substr(0, tab), line.substr(tab + 1));
    if (!fresh) CHECK(at->second == line.substr(tab + 1));
  }
  return found;
}

std::vector<std::string> words_of(const std::string& phrase) {
  std::istringstream stream(phrase);
  return {std::istream_iterator<std::string>(stream), {}};
}

// All pairs of words that occur in one phrase, each with itself too.
std::set<std::pair<std::string, std::string>> meetings(const std::map<std::string, std::string>& phrases) {
  std::set<std::pair<std::string, std::string>> met;
  for (const auto& [english, spanish] : phrases) {
    const auto words = words_of(english);
    for (const auto& a : words) {
      for (const auto& b : words) met.emplace(a, b);
    }
  }
  return met;
}

}  // namespace

TEST_CASE("the translations are Spanish: agreement, order, the personal a and its contraction") {
  auto all = translations("translation", 60000);
  all.merge(translations("translation-held-out", 60000));
  const std::pair<const char*, const char*> by_hand[] = {
      {"the cat", "el gato"},
      {"the cats", "los gatos"},
      {"the house", "la casa"},
      {"some flowers", "unas flores"},
      {"a tree", "un árbol"},
      {"many cities", "muchas ciudades"},
      {"our gardens", "nuestros jardines"},
      {"every woman", "cada mujer"},
      {"this red table", "esta mesa roja"},
      {"those blue pencils", "esos lápices azules"},
      {"my big butterflies", "mis mariposas grandes"},
      {"two famous lions", "dos leones famosos"},
      {"the boys sleep", "los niños duermen"},
      {"that turtle does not swim", "esa tortuga no nada"},
      {"many big sisters are tall", "muchas hermanas grandes son altas"},
      {"a beautiful boy is not black", "un niño hermoso no es negro"},
      {"a girl hears the king", "una niña oye al rey"},
      {"every cow sees the red brother", "cada vaca ve al hermano rojo"},
      {"a lion does not hear the queen", "un león no oye a la reina"},
  };
  for (const auto& [english, spanish] : by_hand) {
    INFO(english);
    CHECK(all[english] == spanish);
  }
}

TEST_CASE("held-out translations are of words that the training knows but never says together") {
  const auto train = translations("translation", 20000),
             held_out = translations("translation-held-out", 2000);
  const auto met = meetings(train);
  for (const char* noun : {"cat", "cats"}) CHECK_FALSE(met.contains({"the", noun}));
  CHECK(met.contains({"the", "dog"}));
  CHECK(met.contains({"a", "cat"}));
  CHECK(met.contains({"my", "cats"}));
  CHECK(held_out.at("the cat") == "el gato");
  for (const auto& [english, spanish] : held_out) {
    INFO(english);
    CHECK_FALSE(train.contains(english));
    const auto words = words_of(english);
    bool apart = false;
    for (const auto& a : words) {
      REQUIRE(met.contains({a, a}));
      for (const auto& b : words) apart = apart || !met.contains({a, b});
    }
    CHECK(apart);
  }
}
