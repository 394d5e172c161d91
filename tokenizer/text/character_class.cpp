#include "tokenizer/text/character_class.h"

#include <algorithm>
#include <map>

#include "data/base/lines.h"

namespace zoo::embedded {
extern const std::string_view kCharacterClasses;  // character_classes.txt
}

namespace zoo {
namespace {

// Of a category, or of a member of Space.
std::uint8_t bits_of(std::string_view name) {
  if (name == "In") return CharacterClass::kSpace;
  if (name[0] == 'N') return CharacterClass::kNumber;
  if (name[0] == 'M') return CharacterClass::kMark;
  if (name == "Lu" || name == "Lt") return CharacterClass::kUpper;
  if (name == "Ll") return CharacterClass::kLower;
  return name[0] == 'L' ? CharacterClass::kCaseless : 0;
}

}  // namespace

std::string character_ranges(std::string_view list) {
  std::string ranges(text_section(embedded::kCharacterClasses, list));
  std::erase(ranges, '\n');
  return ranges;
}

const CharacterClasses& CharacterClasses::get() {
  static const CharacterClasses classes;
  return classes;
}

CharacterClasses::CharacterClasses() {
  std::vector<std::uint8_t> all(0x110000, 0);
  const auto fill = [&all](std::string_view name, char32_t first, char32_t last) {
    std::fill(all.begin() + first, all.begin() + last + 1, bits_of(name));
  };
  for_each_range(character_ranges("Category"), fill);
  for_each_range(character_ranges("Space"), fill);
  for (const char32_t newline : {U'\r', U'\n'}) all[newline] |= CharacterClass::kNewline;

  std::copy_n(all.begin(), kAscii, ascii_.begin());
  std::map<std::string, std::uint16_t> known;
  for (std::size_t page = 0; page < pages_of_.size(); ++page) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(page * kPage);
    const std::string content(begin, begin + kPage);
    const auto [entry, is_new] = known.emplace(content, static_cast<std::uint16_t>(known.size()));
    if (is_new) pages_.insert(pages_.end(), content.begin(), content.end());
    pages_of_[page] = entry->second;
  }
}

}  // namespace zoo
