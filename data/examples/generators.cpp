#include "data/examples/generators.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "data/base/field_error.h"
#include "data/base/lines.h"
#include "data/base/near_match.h"
#include "data/examples/translations.h"
#include "data/random/random_stream.h"

namespace zoo {
namespace {

constexpr std::int64_t kMostLines = 10'000'000;
constexpr std::uint64_t kMostDigits = 8, kAddendsBelow = 100;

/// The random numbers of one line; std::uniform_int_distribution differs between standard libraries.
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

std::string spaced(const std::string& digits) {
  std::string text;
  for (const char digit : digits) text.append(text.empty() ? "" : " ") += digit;
  return text;
}

// The text between question and answer.
struct Separators {
  const char *sum, *others;
};

std::string digits_line(const std::string& name, const Separators& between, LineRandom random) {
  if (name == "addition") {
    const std::uint64_t a = random.below(kAddendsBelow), b = random.below(kAddendsBelow);
    return std::to_string(a) + "+" + std::to_string(b) + between.sum + std::to_string(a + b) + "\n";
  }
  std::string digits = random_digits(random);
  const std::string question = spaced(digits);
  if (name == "reverse") std::ranges::reverse(digits);
  if (name == "sort") std::ranges::sort(digits);
  return question + between.others + spaced(digits) + "\n";
}

// Small grammars for the tasks with labels for texts, words and answers.
using Words = std::span<const std::string_view>;

constexpr std::string_view kThings[] = {"film", "book", "meal", "song", "play", "room", "trip", "show"};
constexpr std::string_view kPraise[] = {"lovely", "fine", "great",     "splendid",  "warm",      "clever",
                                        "good",   "nice", "beautiful", "wonderful", "excellent", "funny"};
constexpr std::string_view kBlame[] = {"dull", "poor", "awful", "cold",     "boring",   "stale",
                                       "bad",  "weak", "ugly",  "terrible", "horrible", "stupid"};
// Each "did not like" and, with its second part, "liked".
constexpr std::pair<std::string_view, std::string_view> kLikes[] = {
    {"like", "d"}, {"love", "d"}, {"enjoy", "ed"}, {"admire", "d"}};
constexpr std::pair<std::string_view, std::string_view> kDislikes[] = {
    {"hate", "d"}, {"dislike", "d"}, {"regret", "ted"}, {"despise", "d"}};
constexpr std::string_view kPeople[] = {"Anna", "Ben", "Clara", "David", "Emma", "Felix", "Grace", "Hugo"};
constexpr std::string_view kFamilies[] = {"Stone", "Rivers", "Hill", "Woods", "Field", "Marsh"};
constexpr std::string_view kPlaces[] = {"Rome", "Oslo", "Paris", "Kyoto", "Lima", "Cairo"};
constexpr std::string_view kNewPlaces[] = {"York", "Delhi", "Haven", "Castle"};
constexpr std::string_view kWork[] = {"paints", "teaches", "bakes", "sings", "writes", "builds"};

std::string pick(Words words, RandomStream& random) { return std::string(words[random.below(words.size())]); }

std::string made_up_word(RandomStream& random) {
  std::string word(3 + random.below(6), 'a');
  for (char& letter : word) letter = static_cast<char>('a' + random.below(26));
  return word;
}

// "I liked the film", "I did not like it"
std::string liking(bool good, RandomStream& random) {
  const bool negated = random.below(3) == 0;
  const auto& [verb, ending] = (good != negated ? kLikes : kDislikes)[random.below(std::size(kLikes))];
  std::string text = negated ? "I did not " : "I ";
  text += std::string(verb) + (negated ? "" : std::string(ending));
  return text + (random.below(2) == 0 ? " it" : " the " + pick(kThings, random));
}

// "the film was dull", "not clever", "a fine book", "it was warm and not cold"
std::string judgement(bool good, RandomStream& random) {
  const Words mine = good ? Words(kPraise) : Words(kBlame), others = good ? Words(kBlame) : Words(kPraise);
  if (random.below(4) == 0)
    return (random.below(2) == 0 ? "a " : "") + pick(mine, random) + " " + pick(kThings, random);
  const std::uint64_t kind = random.below(4);
  const std::string begin = kind == 0 ? "" : kind == 1 ? "it was " : "the " + pick(kThings, random) + " was ";
  if (random.below(4) == 0) return begin + "not " + pick(others, random);
  return begin + pick(mine, random) + (random.below(4) == 0 ? " and not " + pick(others, random) : "");
}

std::string review(RandomStream& random) {
  const bool good = random.below(2) == 1;
  // The label of a made-up word is random, so that a model learns not to guess from unknown words.
  const std::uint64_t kind = random.below(20);
  const std::string text = kind == 0  ? "it was " + made_up_word(random)
                           : kind < 8 ? liking(good, random)
                                      : judgement(good, random);
  return text + (good ? "\tpositive\n" : "\tnegative\n");
}

std::string named_sentence(RandomStream& random) {
  std::string text = pick(kPeople, random) + "\tB-PER\n";
  if (random.below(2) == 1) text += pick(kFamilies, random) + "\tI-PER\n";
  text += pick(kWork, random) + "\tO\nin\tO\n";
  if (random.below(2) == 1) {
    text += "New\tB-LOC\n" + pick(kNewPlaces, random) + "\tI-LOC\n";
  } else {
    text += pick(kPlaces, random) + "\tB-LOC\n";
  }
  return text + ".\tO\n\n";
}

std::string question(RandomStream& random) {
  const std::string person = pick(kPeople, random), place = pick(kPlaces, random), work = pick(kWork, random);
  const std::string context = person + " " + work + " every day in " + place + " .";
  switch (random.below(3)) {
    case 0: return "Where does she work ?\t" + context + "\t" + place + "\n";
    case 1: return "Who works there ?\t" + context + "\t" + person + "\n";
    default: return "What happens every day ?\t" + context + "\t" + work + "\n";
  }
}

std::string make_lines(const std::string& name, const Separators& between, std::int64_t count,
                       std::uint64_t seed) {
  static_cast<void>(find_toy_set(name));
  if (count < 1 || count > kMostLines)
    throw FieldError(Field{"count"}, " must be from 1 to ", kMostLines, ", found ", count);
  if (name == "translation") return make_translations(PhraseSet::kTraining, count, seed);
  if (name == "translation-held-out") return make_translations(PhraseSet::kHeldOut, count, seed);
  std::string text;
  for (std::int64_t line = 0; line < count; ++line) {
    RandomStream random(seed, {.step = line});
    text += name == "reviews"     ? review(random)
            : name == "names"     ? named_sentence(random)
            : name == "questions" ? question(random)
                                  : digits_line(name, between, LineRandom(seed, line));
  }
  return text;
}

}  // namespace

const std::vector<ToySet>& toy_sets() {
  static const std::vector<ToySet> kToySets = {
      {"copy", "1 to 8 digits and the same again", "3 1 2 > 3 1 2"},
      {"reverse", "1 to 8 digits and the same backwards", "3 1 2 > 2 1 3"},
      {"sort", "1 to 8 digits and the same in order", "3 1 2 > 1 2 3"},
      {"addition", "the sum of two numbers from 0 to 99", "12+34=46"},
      {"reviews", "a sentence and whether it praises, for the task classification",
       "I did not like the film\tnegative"},
      {"names", "words with labels of people and places, for the task token_classification", "Anna\tB-PER"},
      {"questions", "question, text and answer, for the task question_answering",
       "Who works there ?\tAnna sings every day in Rome .\tAnna"},
      {"translation", "an English phrase and its Spanish, for the task seq2seq",
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

const ToySet& find_toy_set(const std::string& name) {
  for (const ToySet& set : toy_sets())
    if (set.name == name) return set;
  throw Error("unknown toy set '", name, "'; the toy sets are ", joined(toy_set_names()),
              did_you_mean(name, toy_set_names()));
}

bool is_toy_set(const std::string& name) { return std::ranges::count(toy_sets(), name, &ToySet::name) > 0; }

std::string make_toy_set(const std::string& name, std::int64_t count, std::uint64_t seed) {
  return make_lines(name, {.sum = "=", .others = " > "}, count, seed);
}

std::string make_toy_pairs(const std::string& name, std::int64_t count, std::uint64_t seed) {
  return make_lines(name, {.sum = "\t", .others = "\t"}, count, seed);
}

}  // namespace zoo
