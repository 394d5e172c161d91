#include "data/examples/toy_tables.h"

#include <span>
#include <string_view>

#include "data/examples/translations.h"
#include "data/random/random_stream.h"

namespace zoo {
namespace {

using Words = std::span<const std::string_view>;

constexpr std::string_view kThings[] = {"film", "book", "meal", "song", "play", "room", "trip", "show"};
constexpr std::string_view kPraise[] = {"lovely", "fine", "great", "splendid", "warm", "clever"};
constexpr std::string_view kBlame[] = {"dull", "poor", "awful", "cold", "boring", "stale"};
constexpr std::string_view kPeople[] = {"Anna", "Ben", "Clara", "David", "Emma", "Felix", "Grace", "Hugo"};
constexpr std::string_view kFamilies[] = {"Stone", "Rivers", "Hill", "Woods", "Field", "Marsh"};
constexpr std::string_view kPlaces[] = {"Rome", "Oslo", "Paris", "Kyoto", "Lima", "Cairo"};
constexpr std::string_view kNewPlaces[] = {"York", "Delhi", "Haven", "Castle"};
constexpr std::string_view kWork[] = {"paints", "teaches", "bakes", "sings", "writes", "builds"};

std::string pick(Words words, RandomStream& random) {
  return std::string(words[random.below(words.size())]);
}

std::string review(RandomStream& random) {
  const bool good = random.below(2) == 1;
  const Words mine = good ? Words(kPraise) : Words(kBlame), others = good ? Words(kBlame) : Words(kPraise);
  std::string text = "the " + pick(kThings, random) + " was " + pick(mine, random);
  // A word of the other kind, denied.
  if (random.below(3) == 0) text += " and not " + pick(others, random);
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
    case 0:
      return "Where does she work ?\t" + context + "\t" + place + "\n";
    case 1:
      return "Who works there ?\t" + context + "\t" + person + "\n";
    default:
      return "What happens every day ?\t" + context + "\t" + work + "\n";
  }
}

}  // namespace

const std::vector<std::string>& toy_table_names() {
  static const std::vector<std::string> names{"reviews", "names", "questions", "translation",
                                              "translation-held-out"};
  return names;
}

std::string make_toy_table(const std::string& name, std::int64_t count, std::uint64_t seed) {
  if (name == "translation") return make_translations(PhraseSet::kTraining, count, seed);
  if (name == "translation-held-out") return make_translations(PhraseSet::kHeldOut, count, seed);
  std::string text;
  for (std::int64_t line = 0; line < count; ++line) {
    RandomStream random(seed, {.step = line});
    text += name == "reviews" ? review(random) : name == "names" ? named_sentence(random) : question(random);
  }
  return text;
}

}  // namespace zoo
