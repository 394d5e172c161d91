#include "tokenizer/text/character_class.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>

#include "tokenizer/text/character_class_ranges.h"

namespace zoo {

const CharacterClasses& CharacterClasses::get() {
  static const CharacterClasses classes;
  return classes;
}

CharacterClasses::CharacterClasses() {
  std::vector<std::uint8_t> all(0x110000, 0);
  const auto fill = [&all](std::span<const CharacterRange> ranges, std::uint8_t bits) {
    for (const CharacterRange& range : ranges) {
      for (char32_t c = range.first; c <= range.last; c += range.step) all[c] = bits;
    }
  };
  fill(kSpaceRanges, CharacterClass::kSpace);
  fill(kNdRanges, CharacterClass::kNumber);
  fill(kNlRanges, CharacterClass::kNumber);
  fill(kNoRanges, CharacterClass::kNumber);
  fill(kLuRanges, CharacterClass::kUpper);
  fill(kLtRanges, CharacterClass::kUpper);
  fill(kLlRanges, CharacterClass::kLower);
  fill(kLmRanges, CharacterClass::kCaseless);
  fill(kLoRanges, CharacterClass::kCaseless);
  fill(kMnRanges, CharacterClass::kMark);
  fill(kMcRanges, CharacterClass::kMark);
  fill(kMeRanges, CharacterClass::kMark);
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
