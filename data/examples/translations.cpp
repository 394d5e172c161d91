#include "data/examples/translations.h"

#include <array>
#include <string_view>
#include <vector>

#include "data/random/random_stream.h"

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
struct Determiner {
  Text english;
  Forms masculine, feminine;
};

struct Verb {
  Forms english, spanish;
  bool takes_object;
};

constexpr Noun kNouns[] = {
    {{"cat", "cats"}, {"gato", "gatos"}, false, Kind::kAnimal},
    {{"house", "houses"}, {"casa", "casas"}, true, Kind::kThing},
    {{"girl", "girls"}, {"niña", "niñas"}, true, Kind::kPerson},
    {{"book", "books"}, {"libro", "libros"}, false, Kind::kThing},
    {{"man", "men"}, {"hombre", "hombres"}, false, Kind::kPerson},
    {{"cow", "cows"}, {"vaca", "vacas"}, true, Kind::kAnimal},
    {{"tree", "trees"}, {"árbol", "árboles"}, false, Kind::kThing},
    {{"flower", "flowers"}, {"flor", "flores"}, true, Kind::kThing},
    {{"dog", "dogs"}, {"perro", "perros"}, false, Kind::kAnimal},
    {{"queen", "queens"}, {"reina", "reinas"}, true, Kind::kPerson},
    {{"car", "cars"}, {"coche", "coches"}, false, Kind::kThing},
    {{"table", "tables"}, {"mesa", "mesas"}, true, Kind::kThing},
    {{"bird", "birds"}, {"pájaro", "pájaros"}, false, Kind::kAnimal},
    {{"boy", "boys"}, {"niño", "niños"}, false, Kind::kPerson},
    {{"city", "cities"}, {"ciudad", "ciudades"}, true, Kind::kThing},
    {{"woman", "women"}, {"mujer", "mujeres"}, true, Kind::kPerson},
    {{"river", "rivers"}, {"río", "ríos"}, false, Kind::kThing},
    {{"turtle", "turtles"}, {"tortuga", "tortugas"}, true, Kind::kAnimal},
    {{"pencil", "pencils"}, {"lápiz", "lápices"}, false, Kind::kThing},
    {{"king", "kings"}, {"rey", "reyes"}, false, Kind::kPerson},
    {{"door", "doors"}, {"puerta", "puertas"}, true, Kind::kThing},
    {{"horse", "horses"}, {"caballo", "caballos"}, false, Kind::kAnimal},
    {{"letter", "letters"}, {"carta", "cartas"}, true, Kind::kThing},
    {{"brother", "brothers"}, {"hermano", "hermanos"}, false, Kind::kPerson},
    {{"lion", "lions"}, {"león", "leones"}, false, Kind::kAnimal},
    {{"sister", "sisters"}, {"hermana", "hermanas"}, true, Kind::kPerson},
    {{"hat", "hats"}, {"sombrero", "sombreros"}, false, Kind::kThing},
    {{"butterfly", "butterflies"}, {"mariposa", "mariposas"}, true, Kind::kAnimal},
    {{"mountain", "mountains"}, {"montaña", "montañas"}, true, Kind::kThing},
    {{"garden", "gardens"}, {"jardín", "jardines"}, false, Kind::kThing},
};

constexpr Adjective kAdjectives[] = {
    {"red", {"rojo", "rojos"}, {"roja", "rojas"}},
    {"big", {"grande", "grandes"}, {"grande", "grandes"}},
    {"white", {"blanco", "blancos"}, {"blanca", "blancas"}},
    {"small", {"pequeño", "pequeños"}, {"pequeña", "pequeñas"}},
    {"green", {"verde", "verdes"}, {"verde", "verdes"}},
    {"black", {"negro", "negros"}, {"negra", "negras"}},
    {"new", {"nuevo", "nuevos"}, {"nueva", "nuevas"}},
    {"blue", {"azul", "azules"}, {"azul", "azules"}},
    {"beautiful", {"hermoso", "hermosos"}, {"hermosa", "hermosas"}},
    {"strong", {"fuerte", "fuertes"}, {"fuerte", "fuertes"}},
    {"tall", {"alto", "altos"}, {"alta", "altas"}},
    {"fast", {"rápido", "rápidos"}, {"rápida", "rápidas"}},
    {"famous", {"famoso", "famosos"}, {"famosa", "famosas"}},
    {"yellow", {"amarillo", "amarillos"}, {"amarilla", "amarillas"}},
};

constexpr Determiner kDeterminers[] = {
    {"the", {"el", "los"}, {"la", "las"}},
    {"a", {"un", ""}, {"una", ""}},
    {"some", {"", "unos"}, {"", "unas"}},
    {"this", {"este", ""}, {"esta", ""}},
    {"these", {"", "estos"}, {"", "estas"}},
    {"my", {"mi", "mis"}, {"mi", "mis"}},
    {"that", {"ese", ""}, {"esa", ""}},
    {"those", {"", "esos"}, {"", "esas"}},
    {"our", {"nuestro", "nuestros"}, {"nuestra", "nuestras"}},
    {"every", {"cada", ""}, {"cada", ""}},
    {"many", {"", "muchos"}, {"", "muchas"}},
    {"two", {"", "dos"}, {"", "dos"}},
};

constexpr Verb kVerbs[] = {
    {{"sees", "see"}, {"ve", "ven"}, true},
    {{"sleeps", "sleep"}, {"duerme", "duermen"}, false},
    {{"paints", "paint"}, {"pinta", "pintan"}, true},
    {{"runs", "run"}, {"corre", "corren"}, false},
    {{"finds", "find"}, {"encuentra", "encuentran"}, true},
    {{"sings", "sing"}, {"canta", "cantan"}, false},
    {{"follows", "follow"}, {"sigue", "siguen"}, true},
    {{"falls", "fall"}, {"cae", "caen"}, false},
    {{"hears", "hear"}, {"oye", "oyen"}, true},
    {{"swims", "swim"}, {"nada", "nadan"}, false},
    {{"carries", "carry"}, {"lleva", "llevan"}, true},
    {{"arrives", "arrive"}, {"llega", "llegan"}, false},
    {{"touches", "touch"}, {"toca", "tocan"}, true},
};

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
  explicit Phrase(RandomStream& random) : random_(random) {}

  void draw() {
    switch (random_.below(4)) {
      case 0: add_noun_phrase(Kind::kThing, /*is_object=*/false); break;
      case 1:
        add_noun_phrase(Kind::kThing, /*is_object=*/false);
        add_being();
        break;
      default: add_noun_phrase(Kind::kAnimal, /*is_object=*/false); add_deed();
    }
  }

  const WordChoice& words() const { return words_; }
  std::string line() const { return english_ + "\t" + spanish_ + "\n"; }

 private:
  std::size_t pick(std::size_t count) { return static_cast<std::size_t>(random_.below(count)); }

  static void append(std::string& text, Text word) {
    if (!text.empty()) text += ' ';
    text += word;
  }

  // Adds a noun of this kind or a more animate one, with a determiner and perhaps an adjective, and sets
  // number_ and feminine_.
  void add_noun_phrase(Kind least, bool is_object) {
    std::size_t n = pick(std::size(kNouns));
    while (kNouns[n].kind < least) n = pick(std::size(kNouns));
    const Noun& noun = kNouns[n];
    number_ = pick(2);
    feminine_ = noun.feminine;
    std::size_t d = pick(std::size(kDeterminers));
    while (kDeterminers[d].masculine[number_].empty()) d = pick(std::size(kDeterminers));
    words_.nouns.push_back(n);
    words_.determiners.push_back(d);

    const Text determiner = form(kDeterminers[d]);
    const bool has_a = is_object && noun.kind == Kind::kPerson;
    if (has_a && determiner != "el") append(spanish_, "a");
    append(spanish_, has_a && determiner == "el" ? "al" : determiner);
    append(spanish_, noun.spanish[number_]);
    append(english_, kDeterminers[d].english);
    if (pick(2) == 1) add_adjective();
    append(english_, noun.english[number_]);
  }

  template <class Word> Text form(const Word& word) const {
    return (feminine_ ? word.feminine : word.masculine)[number_];
  }

  void add_adjective() {
    const std::size_t a = pick(std::size(kAdjectives));
    words_.adjectives.push_back(a);
    append(english_, kAdjectives[a].english);
    append(spanish_, form(kAdjectives[a]));
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
    const std::size_t v = pick(std::size(kVerbs));
    const Verb& verb = kVerbs[v];
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

  RandomStream& random_;
  WordChoice words_;
  std::size_t number_ = 0;
  bool feminine_ = false;
  std::string english_, spanish_;
};

}  // namespace

std::string make_translations(PhraseSet set, std::int64_t count, std::uint64_t seed) {
  std::string text;
  for (std::int64_t line = 0; line < count; ++line) {
    RandomStream random(seed, {.step = line});
    for (;;) {
      Phrase phrase(random);
      phrase.draw();
      if (is_held_out(phrase.words()) != (set == PhraseSet::kHeldOut)) continue;
      text += phrase.line();
      break;
    }
  }
  return text;
}

}  // namespace zoo
