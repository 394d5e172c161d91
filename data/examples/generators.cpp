#include "data/examples/generators.h"

#include <algorithm>

#include "data/base/error.h"
#include "data/base/near_match.h"
#include "data/examples/toy_tables.h"
#include "data/random/philox.h"

namespace zoo {
namespace {

constexpr std::int64_t kMostLines = 10'000'000;
constexpr std::uint64_t kMostDigits = 8, kAddendsBelow = 100;

/// The random numbers of one line. (std::uniform_int_distribution differs between standard libraries.)
class LineRandom {
 public:
  LineRandom(std::uint64_t seed, std::int64_t line)
      : key_(philox_key(seed)), line_(static_cast<std::uint32_t>(line)) {}

  std::uint64_t below(std::uint64_t range) { return uniform_below(range, {draw_++, 0, line_, 0}, key_); }

 private:
  PhiloxKey key_;
  std::uint32_t line_, draw_ = 0;
};

std::string random_digits(LineRandom& random) {
  std::string digits(1 + random.below(kMostDigits), '0');
  for (char& digit : digits) digit = static_cast<char>('0' + random.below(10));
  return digits;
}

void append_spaced(const std::string& digits, std::string& text) {
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0) text += ' ';
    text += digits[i];
  }
}

// What stands between a line's question and its answer.
struct Separators {
  const char *sum, *others;
};

void append_line(const std::string& name, const Separators& between, LineRandom random, std::string& text) {
  if (name == "addition") {
    const std::uint64_t a = random.below(kAddendsBelow), b = random.below(kAddendsBelow);
    text += std::to_string(a) + "+" + std::to_string(b) + between.sum + std::to_string(a + b) + "\n";
    return;
  }
  std::string digits = random_digits(random);
  append_spaced(digits, text);
  text += between.others;
  if (name == "reverse") std::reverse(digits.begin(), digits.end());
  if (name == "sort") std::sort(digits.begin(), digits.end());
  append_spaced(digits, text);
  text += '\n';
}

}  // namespace

const std::vector<ToySet>& toy_sets() {
  static const std::vector<ToySet> kToySets = {
      {"copy", "1 to 8 digits and the same again", "3 1 2 > 3 1 2"},
      {"reverse", "1 to 8 digits and the same backwards", "3 1 2 > 2 1 3"},
      {"sort", "1 to 8 digits and the same in order", "3 1 2 > 1 2 3"},
      {"addition", "the sum of two numbers from 0 to 99", "12+34=46"},
      {"reviews", "a sentence and whether it praises, for --task classification",
       "the film was fine\tpositive"},
      {"names", "words with labels of people and places, for --task token_classification", "Anna\tB-PER"},
      {"questions", "question, text and answer, for --task question_answering",
       "Who works there ?\tAnna sings every day in Rome .\tAnna"},
      {"translation", "an English phrase and its Spanish, for --task seq2seq",
       "the dog sleeps\tel perro duerme", 100000},
      {"translation-held-out", "phrases with words that never meet in translation", "the cat\tel gato"},
  };
  return kToySets;
}

std::vector<std::string> toy_set_names() {
  std::vector<std::string> names;
  for (const ToySet& set : toy_sets()) names.push_back(set.name);
  return names;
}

namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string make_lines(const std::string& name, const Separators& between, std::int64_t count,
                       std::uint64_t seed) {
  static_cast<void>(find_toy_set(name));
  if (count < 1 || count > kMostLines) {
    throw Error("--count must be from 1 to ", kMostLines, ", found ", count);
  }
  const auto& tables = toy_table_names();
  if (std::find(tables.begin(), tables.end(), name) != tables.end()) return make_toy_table(name, count, seed);
  std::string text;
  for (std::int64_t line = 0; line < count; ++line) append_line(name, between, LineRandom(seed, line), text);
  return text;
}

}  // namespace

const ToySet& find_toy_set(const std::string& name) {
  for (const ToySet& set : toy_sets()) {
    if (set.name == name) return set;
  }
  throw Error("unknown toy set '", name, "'; there are ", joined(toy_set_names()),
              did_you_mean(name, toy_set_names()));
}

bool is_toy_set(const std::string& name) {
  const std::vector<std::string> names = toy_set_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string make_toy_set(const std::string& name, std::int64_t count, std::uint64_t seed) {
  return make_lines(name, {.sum = "=", .others = " > "}, count, seed);
}

std::string make_toy_pairs(const std::string& name, std::int64_t count, std::uint64_t seed) {
  return make_lines(name, {.sum = "\t", .others = "\t"}, count, seed);
}

}  // namespace zoo
