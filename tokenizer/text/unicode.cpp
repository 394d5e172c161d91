#include "tokenizer/text/unicode.h"

#include <algorithm>
#include <memory>

#include <unicode/brkiter.h>
#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/utext.h>

#include "data/base/error.h"
#include "tokenizer/text/character_class.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

UChar32 icu(char32_t c) { return static_cast<UChar32>(c); }

void require(UErrorCode status, const char* what) {
  if (U_FAILURE(status)) throw Error("ICU's ", what, " failed: ", u_errorName(status));
}

bool is_older_than(char32_t c, int major) {
  UVersionInfo age;
  u_charAge(icu(c), age);
  return age[0] < major || (age[0] == major && age[1] == 0 && age[2] == 0);
}

// The general category in Unicode 8, as an ICU mask; the switch has the later changes.
std::uint32_t category(char32_t c) {
  switch (c) {
    case 0x166D:
    case 0x111C9: return U_GC_PO_MASK;
    case 0x1734:
    case 0x1171E: return U_GC_MN_MASK;
    case 0x1885:
    case 0x1886: return U_GC_LO_MASK;
    case 0xA9BD: return U_GC_MC_MASK;
    default: return is_older_than(c, 8) ? U_GET_GC_MASK(icu(c)) : U_GC_CN_MASK;
  }
}

bool is_known_to_normalization(char32_t c) { return is_older_than(c, 9); }

const icu::Normalizer2& normalizer(Decomposition kind) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* found = kind == Decomposition::canonical
                                      ? icu::Normalizer2::getNFCInstance(status)
                                      : icu::Normalizer2::getNFKCInstance(status);
  require(status, "normalization");
  return *found;
}

std::u32string code_points(const icu::UnicodeString& text) {
  std::u32string result;
  for (std::int32_t i = 0; i < text.length(); i = text.moveIndex32(i, 1))
    result += static_cast<char32_t>(text.char32At(i));
  return result;
}

int break_class(char32_t c) { return u_getIntPropertyValue(icu(c), UCHAR_GRAPHEME_CLUSTER_BREAK); }

icu::BreakIterator& grapheme_iterator() {
  static thread_local const std::unique_ptr<icu::BreakIterator> iterator = [] {
    UErrorCode status = U_ZERO_ERROR;
    std::unique_ptr<icu::BreakIterator> made(
        icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), status));
    require(status, "break iterator");
    return made;
  }();
  return *iterator;
}

// The end of the first cluster of `text`.
std::size_t first_grapheme(std::string_view text) {
  UErrorCode status = U_ZERO_ERROR;
  UText utext = UTEXT_INITIALIZER;
  utext_openUTF8(&utext, text.data(), static_cast<std::int64_t>(text.size()), &status);
  icu::BreakIterator& iterator = grapheme_iterator();
  iterator.setText(&utext, status);
  const std::int32_t end = iterator.next();
  utext_close(&utext);
  require(status, "break iterator");
  return static_cast<std::size_t>(end);
}

// Capitals of Unicode 16 and 17, which `tokenizers` knows and ICU may not.
struct NewCapitals {
  char32_t first, last, lowercase;  // of the first
};
constexpr NewCapitals kNewCapitals[] = {{0x1C89, 0x1C89, 0x1C8A},    {0xA7CB, 0xA7CB, 0x0264},
                                        {0xA7CC, 0xA7CC, 0xA7CD},    {0xA7CE, 0xA7CE, 0xA7CF},
                                        {0xA7D2, 0xA7D2, 0xA7D3},    {0xA7D4, 0xA7D4, 0xA7D5},
                                        {0xA7DA, 0xA7DA, 0xA7DB},    {0xA7DC, 0xA7DC, 0x019B},
                                        {0x10D50, 0x10D65, 0x10D70}, {0x16EA0, 0x16EB8, 0x16EBB}};

// A new character, and what it replaces: 0 is one old character, 1 none, -n 1 + n.
struct Changed {
  char32_t character;
  int change = 0;
  int order = 0;  // the combining class
};

// Sorts marks by combining class; the changes move with them.
void sort_marks(std::vector<Changed>& text) {
  const auto is_starter = [](const Changed& c) { return c.order == 0; };
  for (auto end = text.begin(); end != text.end();) {
    const auto begin = std::find_if_not(end, text.end(), is_starter);
    end = std::find_if(begin, text.end(), is_starter);
    std::stable_sort(begin, end, [](const Changed& a, const Changed& b) { return a.order < b.order; });
  }
}

std::vector<Changed> decompose(const std::string& text, Decomposition kind) {
  std::vector<Changed> result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    int change = 0;
    for (const char32_t part : decomposed(next_code_point(text, at), kind)) {
      result.push_back({part, change, combining_class(part)});
      change = 1;
    }
  }
  sort_marks(result);
  return result;
}

// The character that two compose to in NFC; 0 if there is none.
char32_t composed(char32_t first, char32_t second) {
  if (second < 0x300) return 0;
  const UChar32 pair = normalizer(Decomposition::canonical).composePair(icu(first), icu(second));
  return pair < 0 || !is_known_to_normalization(static_cast<char32_t>(pair)) ? 0
                                                                             : static_cast<char32_t>(pair);
}

// A mark joins the last starter unless a mark of the same or a higher class is between them.
std::vector<Changed> compose(const std::vector<Changed>& text) {
  std::vector<Changed> result;
  result.reserve(text.size());
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t starter = kNone;
  for (const Changed& next : text) {
    if (starter != kNone) {
      const bool adjacent = starter + 1 == result.size();
      const bool blocked = !adjacent && (next.order == 0 || result.back().order >= next.order);
      const char32_t pair = blocked ? 0 : composed(result[starter].character, next.character);
      if (pair != 0) {
        result[starter].character = pair;
        result[starter].change += next.change - 1;
        continue;
      }
    }
    if (next.order == 0) starter = result.size();
    result.push_back(next);
  }
  return result;
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  return u_isUWhiteSpace(icu(c));
}

std::size_t skip_spaces(std::string_view text, std::size_t at) {
  for (std::size_t next = at; next < text.size() && is_white_space(next_code_point(text, next));) at = next;
  return at;
}

std::size_t skip_spaces_back(std::string_view text, std::size_t at) {
  while (at > 0 && is_white_space(character_before(text, at))) at = character_begin(text, at);
  return at;
}

bool is_punctuation(char32_t c) {
  if (c < 0x80)
    return (c > 0x20 && c < 0x30) || (c > 0x39 && c < 0x41) || (c > 0x5A && c < 0x61) ||
           (c > 0x7A && c < 0x7F);
  return (category(c) & U_GC_P_MASK) != 0;
}

bool is_control(char32_t c) {
  if (c < 0x80) return c < 0x20 || c == 0x7F;
  return (category(c) & (U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK)) != 0;
}

bool is_nonspacing_mark(char32_t c) { return c >= 0x300 && (category(c) & U_GC_MN_MASK) != 0; }

bool is_combining_mark(char32_t c) {
  if (c < 0x300) return false;
  if (c == 0x1CF2 || c == 0x1CF3) return true;  // until Unicode 12
  return c != 0x111C9 && is_known_to_normalization(c) && (U_GET_GC_MASK(icu(c)) & U_GC_M_MASK) != 0;
}

bool is_numeric(char32_t c) { return (CharacterClasses::get().of(c) & CharacterClass::kNumber) != 0; }

bool is_word_character(char32_t c) {
  const std::uint32_t mask = U_GET_GC_MASK(icu(c));
  // For characters that ICU does not know, the newer tables of the split patterns decide.
  if (mask == U_GC_CN_MASK)
    return (CharacterClasses::get().of(c) &
            (CharacterClass::kLetter | CharacterClass::kMark | CharacterClass::kNumber)) != 0;
  return u_isUAlphabetic(icu(c)) || (mask & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) != 0 ||
         u_hasBinaryProperty(icu(c), UCHAR_JOIN_CONTROL);
}

bool is_cjk_ideograph(char32_t c) {
  if (c < 0x3400) return false;
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

std::u32string lowercase(char32_t c) {
  if (c < 0x80) return {c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c};
  if (c == 0x130) return U"i\u0307";  // the only lower case of two characters
  for (const NewCapitals& range : kNewCapitals) {
    if (c >= range.first && c <= range.last) return {c - range.first + range.lowercase};
  }
  return {static_cast<char32_t>(u_tolower(icu(c)))};
}

std::u32string decomposed(char32_t c, Decomposition kind) {
  icu::UnicodeString result;
  if (c >= 0xA0 && is_known_to_normalization(c) && normalizer(kind).getDecomposition(icu(c), result))
    return code_points(result);
  return {c};
}

int combining_class(char32_t c) {
  return c < 0x300 || !is_known_to_normalization(c) ? 0 : u_getCombiningClass(icu(c));
}

std::size_t grapheme_end(std::string_view text, std::size_t at) {
  const std::size_t begin = at;
  const char32_t first = next_code_point(text, at);
  if (at == text.size()) return at;
  const auto lead = static_cast<unsigned char>(text[at]);
  if (first < 0x300 && lead < 0xCC) return first == '\r' && lead == '\n' ? at + 1 : at;
  // Almost no boundary depends on the following text.
  std::size_t after = at;
  const char32_t second = next_code_point(text, after);
  if (break_class(first) == U_GCB_OTHER && break_class(second) == U_GCB_OTHER) return at;
  return begin + first_grapheme(text.substr(begin));
}

void to_normal_form(AlignedText& text, NormalForm form) {
  if (is_ascii(text.text)) return;
  const bool composes = form == NormalForm::nfc || form == NormalForm::nfkc;
  const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  std::vector<Changed> changed =
      decompose(text.text, compatible ? Decomposition::compatibility : Decomposition::canonical);
  if (composes) changed = compose(changed);
  TextRewriter rewriter(text);
  for (const Changed& c : changed) {
    if (c.change > 0) rewriter.add(c.character);
    else rewriter.replace(c.character, static_cast<std::size_t>(-c.change));
  }
  rewriter.finish();
}

}  // namespace zoo
