#include "tokenizer/text/character_set.h"

#include <algorithm>
#include <cctype>
#include <span>
#include <string>

#include "tokenizer/text/character_class_ranges.h"

namespace zoo {
namespace {

struct Property {
  std::string_view name;
  std::span<const CharacterRange> ranges;
};

const Property kProperties[] = {
    {"lu", kLuRanges},
    {"ll", kLlRanges},
    {"lt", kLtRanges},
    {"lm", kLmRanges},
    {"lo", kLoRanges},
    {"mn", kMnRanges},
    {"mc", kMcRanges},
    {"me", kMeRanges},
    {"nd", kNdRanges},
    {"nl", kNlRanges},
    {"no", kNoRanges},
    {"pc", kPcRanges},
    {"pd", kPdRanges},
    {"ps", kPsRanges},
    {"pe", kPeRanges},
    {"pi", kPiRanges},
    {"pf", kPfRanges},
    {"po", kPoRanges},
    {"sm", kSmRanges},
    {"sc", kScRanges},
    {"sk", kSkRanges},
    {"so", kSoRanges},
    {"zs", kZsRanges},
    {"zl", kZlRanges},
    {"zp", kZpRanges},
    {"cc", kCcRanges},
    {"cf", kCfRanges},
    {"co", kCoRanges},
    {"han", kHanRanges},
    {"hiragana", kHiraganaRanges},
    {"katakana", kKatakanaRanges},
    {"hangul", kHangulRanges},
    {"latin", kLatinRanges},
    {"greek", kGreekRanges},
    {"cyrillic", kCyrillicRanges},
    {"arabic", kArabicRanges},
    {"hebrew", kHebrewRanges},
    {"devanagari", kDevanagariRanges},
    {"thai", kThaiRanges},
};

void add(icu::UnicodeSet& set, std::span<const CharacterRange> ranges) {
  for (const CharacterRange& range : ranges) {
    if (range.step == 1) {
      set.add(static_cast<UChar32>(range.first), static_cast<UChar32>(range.last));
    } else {
      for (char32_t c = range.first; c <= range.last; c += range.step) set.add(static_cast<UChar32>(c));
    }
  }
}

// The union of the properties whose names begin with one of the letters: \p{L} is Lu, Ll …
icu::UnicodeSet categories(std::string_view letters) {
  icu::UnicodeSet set;
  for (const Property& property : kProperties) {
    if (property.name.size() == 2 && letters.find(property.name[0]) != letters.npos)
      add(set, property.ranges);
  }
  return set;
}

icu::UnicodeSet with(icu::UnicodeSet set, std::initializer_list<std::span<const CharacterRange>> more) {
  for (const auto& ranges : more) add(set, ranges);
  return set;
}

icu::UnicodeSet without(icu::UnicodeSet set, const icu::UnicodeSet& others) {
  set.removeAll(others);
  return set;
}

icu::UnicodeSet everything() {
  return {0, 0x10FFFF};
}

icu::UnicodeSet unassigned() {  // Cn and surrogates
  return without(everything(), categories("lmnpszc"));
}

icu::UnicodeSet alphabetic() {
  return with(categories("l"), {kNlRanges, kOtherAlphabeticRanges});
}

icu::UnicodeSet word() {
  return with(alphabetic(), {kMnRanges, kMcRanges, kMeRanges, kNdRanges, kPcRanges});
}

icu::UnicodeSet graphic() {
  return without(everything(), with(unassigned(), {kSpaceRanges, kCcRanges}));
}

// Characters of the names that both notations have.
std::optional<icu::UnicodeSet> shared(std::string_view name) {
  if (name == "alpha") return alphabetic();
  if (name == "alnum") return with(alphabetic(), {kNdRanges});
  if (name == "upper") return with({}, {kLuRanges, kOtherUppercaseRanges});
  if (name == "lower") return with({}, {kLlRanges, kOtherLowercaseRanges});
  if (name == "digit") return with({}, {kNdRanges});
  if (name == "space") return with({}, {kSpaceRanges});
  if (name == "cntrl") return with({}, {kCcRanges});
  if (name == "blank") return with({'\t', '\t'}, {kZsRanges});
  if (name == "graph") return graphic();
  if (name == "print") return with(graphic(), {kZsRanges});
  if (name == "xdigit") return icu::UnicodeSet('0', '9').add('a', 'f').add('A', 'F');
  return std::nullopt;
}

// The engine includes these six in \w, except inside of brackets.
icu::UnicodeSet word_by_itself() {
  return word().add(0xB2, 0xB3).add(0xB9).add(0xBC, 0xBE);
}

}  // namespace

std::optional<icu::UnicodeSet> characters_of_property(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c != ' ' && c != '-' && c != '_')
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  const auto* found = std::find_if(std::begin(kProperties), std::end(kProperties),
                                   [&](const Property& property) { return property.name == plain; });
  if (found != std::end(kProperties)) return with({}, {found->ranges});
  if (plain == "c") return with(unassigned(), {kCcRanges, kCfRanges, kCoRanges});
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
    case 'd':
      return shared("digit");
    case 'h':
      return shared("xdigit");
    case 's':
      return shared("space");
    case 'w':
      return word();
    case 'D':
    case 'H':
    case 'S':
    case 'W':
      return without(everything(), *characters_of_escape(static_cast<char>(letter - 'A' + 'a')));
    default:
      return std::nullopt;
  }
}

}  // namespace zoo
