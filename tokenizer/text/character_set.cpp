#include "tokenizer/text/character_set.h"

#include <cctype>
#include <map>
#include <string>

#include "tokenizer/text/character_class.h"

namespace zoo {
namespace {

using Sets = std::map<std::string, icu::UnicodeSet>;

// Every category and script by its name in small letters, and the lists that need another name.
const Sets& sets() {
  static const Sets all = [] {
    Sets made;
    const auto read = [&made](std::string_view list, const std::string& given) {
      for_each_range(character_ranges(list), [&](std::string_view name, char32_t first, char32_t last) {
        std::string known = given.empty() ? std::string(name) : given;
        known[0] = static_cast<char>(std::tolower(known[0]));
        made[known].add(static_cast<UChar32>(first), static_cast<UChar32>(last));
      });
    };
    read("Category", "");
    read("Script", "");
    read("Space", "space");
    read("OtherAlphabetic", "other alphabetic");
    read("OtherUppercase", "other uppercase");
    read("OtherLowercase", "other lowercase");
    return made;
  }();
  return all;
}

// The union of the categories whose names begin with one of the letters: \p{L} is Lu, Ll …
icu::UnicodeSet categories(std::string_view letters) {
  icu::UnicodeSet set;
  for (const auto& [name, characters] : sets())
    if (name.size() == 2 && letters.find(name[0]) != letters.npos) set.addAll(characters);
  return set;
}

icu::UnicodeSet with(icu::UnicodeSet set, std::initializer_list<std::string> names) {
  for (const std::string& name : names) set.addAll(sets().at(name));
  return set;
}

icu::UnicodeSet without(icu::UnicodeSet set, const icu::UnicodeSet& others) {
  set.removeAll(others);
  return set;
}

icu::UnicodeSet everything() { return {0, 0x10FFFF}; }

icu::UnicodeSet unassigned() {  // Cn and surrogates
  return without(everything(), categories("lmnpszc"));
}

icu::UnicodeSet alphabetic() { return with(categories("l"), {"nl", "other alphabetic"}); }

icu::UnicodeSet word() { return with(alphabetic(), {"mn", "mc", "me", "nd", "pc"}); }

icu::UnicodeSet graphic() { return without(everything(), with(unassigned(), {"space", "cc"})); }

// Characters of the names that both notations have.
std::optional<icu::UnicodeSet> shared(std::string_view name) {
  if (name == "alpha") return alphabetic();
  if (name == "alnum") return with(alphabetic(), {"nd"});
  if (name == "upper") return with({}, {"lu", "other uppercase"});
  if (name == "lower") return with({}, {"ll", "other lowercase"});
  if (name == "digit") return with({}, {"nd"});
  if (name == "space") return with({}, {"space"});
  if (name == "cntrl") return with({}, {"cc"});
  if (name == "blank") return with({'\t', '\t'}, {"zs"});
  if (name == "graph") return graphic();
  if (name == "print") return with(graphic(), {"zs"});
  if (name == "xdigit") return icu::UnicodeSet('0', '9').add('a', 'f').add('A', 'F');
  return std::nullopt;
}

// The engine includes these six in \w, except inside of brackets.
icu::UnicodeSet word_by_itself() { return word().add(0xB2, 0xB3).add(0xB9).add(0xBC, 0xBE); }

}  // namespace

std::optional<icu::UnicodeSet> characters_of_property(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c != ' ' && c != '-' && c != '_')
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (const auto found = sets().find(plain); found != sets().end()) return found->second;
  if (plain == "c") return with(unassigned(), {"cc", "cf", "co"});
  if (plain == "cn") return unassigned().remove(0xD800, 0xDFFF);
  if (plain.size() == 1 && std::string_view("lmnpsz").find(plain[0]) != std::string_view::npos)
    return categories(plain);
  if (plain == "alphabetic") return alphabetic();
  if (plain == "uppercase") return shared("upper");
  if (plain == "lowercase") return shared("lower");
  if (plain == "punct") return categories("p");
  if (plain == "word") return word_by_itself();
  if (plain == "any") return everything();
  if (plain == "ascii") return icu::UnicodeSet(0, 0x7F);
  return shared(plain);
}

std::optional<icu::UnicodeSet> characters_of_bracket(std::string_view name) {
  if (name == "punct") return categories("ps");
  if (name == "word") return word();
  if (name == "ascii") return icu::UnicodeSet(0, 0x7F);
  return shared(name);
}

std::optional<icu::UnicodeSet> characters_of_escape(char letter) {
  switch (letter) {
    case 'd': return shared("digit");
    case 'h': return shared("xdigit");
    case 's': return shared("space");
    case 'w': return word();
    case 'D':
    case 'H':
    case 'S':
    case 'W': return without(everything(), *characters_of_escape(static_cast<char>(letter - 'A' + 'a')));
    default: return std::nullopt;
  }
}

}  // namespace zoo
