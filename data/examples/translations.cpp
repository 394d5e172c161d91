#include "data/examples/translations.h"

#include <array>
#include <string_view>
#include <vector>

#include "data/base/lines.h"
#include "data/random/random_stream.h"

namespace zoo::embedded {
extern const std::string_view kTranslationWords;  // translation_words.txt
}

namespace zoo {
namespace {

using Text = std::string_view;

// Forms by number: singular, plural.
using Forms = std::array<Text, 2>;

enum class Kind { kThing, kAnimal, kPerson };

struct Noun {
  Forms english, spanish;
  bool feminine;
  Kind kind;
};

// Spanish forms by gender, each singular and plural.
struct Adjective {
  Text english;
  Forms masculine, feminine;
};

// An empty form: the determiner lacks this number.
using Determiner = Adjective;

struct Verb {
  Forms english, spanish;
  bool takes_object;
};

struct Lexicon {
  std::vector<Noun> nouns;
  std::vector<Adjective> adjectives;
  std::vector<Determiner> determiners;
  std::vector<Verb> verbs;
};

Lexicon read_lexicon() {
  Lexicon all;
  const auto each = [](const char* section, const auto& add) {
    for (const Line& line : lines_of(text_section(embedded::kTranslationWords, section)))
      add(split(line.text, '\t'));
  };
  using Parts = std::vector<Text>;
  each("nouns", [&](const Parts& p) {
    const Kind kind = p[5] == "thing" ? Kind::kThing : p[5] == "animal" ? Kind::kAnimal : Kind::kPerson;
    all.nouns.push_back({{p[0], p[1]}, {p[2], p[3]}, p[4] == "feminine", kind});
  });
  each("adjectives", [&](const Parts& p) { all.adjectives.push_back({p[0], {p[1], p[2]}, {p[3], p[4]}}); });
  each("determiners", [&](const Parts& p) { all.determiners.push_back({p[0], {p[1], p[2]}, {p[3], p[4]}}); });
  each("verbs", [&](const Parts& p) { all.verbs.push_back({{p[0], p[1]}, {p[2], p[3]}, p[4] == "object"}); });
  return all;
}

// Indices of the words in a phrase, regardless of form and position.
struct WordChoice {
  std::vector<std::size_t> nouns, determiners, adjectives, verbs;
};

// Holds out the pairs of each noun with every ninth word of each kind, starting with "the" (0) and "cat" (0).
constexpr std::size_t kTurn = 9;

bool any_apart(const std::vector<std::size_t>& nouns, const std::vector<std::size_t>& others,
               std::size_t first) {
  for (const std::size_t noun : nouns) {
    for (const std::size_t other : others)
      if ((noun + other) % kTurn == first) return true;
  }
  return false;
}

bool is_held_out(const WordChoice& words) {
  return any_apart(words.nouns, words.determiners, 0) || any_apart(words.nouns, words.adjectives, 3) ||
         any_apart(words.nouns, words.verbs, 6);
}

class Phrase {
 public:
  Phrase(const Lexicon& lexicon, RandomStream& random) : lexicon_(lexicon), random_(random) {
    const std::uint64_t kind = random_.below(4);
    add_noun_phrase(kind < 2 ? Kind::kThing : Kind::kAnimal, /*is_object=*/false);
    if (kind == 1) add_being();
    if (kind > 1) add_deed();
  }

  const WordChoice& words() const { return words_; }
  std::string line() const { return english_ + "\t" + spanish_ + "\n"; }

 private:
  std::size_t pick(std::size_t count) { return static_cast<std::size_t>(random_.below(count)); }

  static void append(std::string& text, Text word) {
    if (!text.empty()) text += ' ';
    text += word;
  }

  // Adds a noun of this kind or a more animate one, with a determiner and perhaps an adjective.
  void add_noun_phrase(Kind least, bool is_object) {
    std::size_t n = pick(lexicon_.nouns.size());
    while (lexicon_.nouns[n].kind < least) n = pick(lexicon_.nouns.size());
    const Noun& noun = lexicon_.nouns[n];
    number_ = pick(2);
    feminine_ = noun.feminine;
    std::size_t d = pick(lexicon_.determiners.size());
    while (lexicon_.determiners[d].masculine[number_].empty()) d = pick(lexicon_.determiners.size());
    words_.nouns.push_back(n);
    words_.determiners.push_back(d);

    const Text determiner = form(lexicon_.determiners[d]);
    const bool has_a = is_object && noun.kind == Kind::kPerson;
    if (has_a && determiner != "el") append(spanish_, "a");
    append(spanish_, has_a && determiner == "el" ? "al" : determiner);
    append(spanish_, noun.spanish[number_]);
    append(english_, lexicon_.determiners[d].english);
    if (pick(2) == 1) add_adjective();
    append(english_, noun.english[number_]);
  }

  template <class Word> Text form(const Word& word) const {
    return (feminine_ ? word.feminine : word.masculine)[number_];
  }

  void add_adjective() {
    const std::size_t a = pick(lexicon_.adjectives.size());
    words_.adjectives.push_back(a);
    append(english_, lexicon_.adjectives[a].english);
    append(spanish_, form(lexicon_.adjectives[a]));
  }

  bool draw_denied() { return pick(4) == 0; }

  void add_being() {
    append(english_, number_ == 0 ? "is" : "are");
    if (draw_denied()) {
      append(english_, "not");
      append(spanish_, "no");
    }
    append(spanish_, number_ == 0 ? "es" : "son");
    add_adjective();
  }

  void add_deed() {
    const std::size_t v = pick(lexicon_.verbs.size());
    const Verb& verb = lexicon_.verbs[v];
    words_.verbs.push_back(v);
    if (draw_denied()) {
      append(english_, number_ == 0 ? "does not" : "do not");
      append(english_, verb.english[1]);
      append(spanish_, "no");
    } else {
      append(english_, verb.english[number_]);
    }
    append(spanish_, verb.spanish[number_]);
    if (verb.takes_object) add_noun_phrase(Kind::kThing, /*is_object=*/true);
  }

  const Lexicon& lexicon_;
  RandomStream& random_;
  WordChoice words_;
  std::size_t number_ = 0;
  bool feminine_ = false;
  std::string english_, spanish_;
};

}  // namespace

std::string make_translations(PhraseSet set, std::int64_t count, std::uint64_t seed) {
  static const Lexicon lexicon = read_lexicon();
  std::string text;
  for (std::int64_t line = 0; line < count; ++line) {
    RandomStream random(seed, {.step = line});
    for (;;) {
      const Phrase phrase(lexicon, random);
      if (is_held_out(phrase.words()) != (set == PhraseSet::kHeldOut)) continue;
      text += phrase.line();
      break;
    }
  }
  return text;
}

}  // namespace zoo
