#include "tokenizer/constraint/pattern.h"

#include <algorithm>

#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

PatternPtr make(Pattern pattern) { return std::make_shared<const Pattern>(std::move(pattern)); }

// The empty text: sequence(), choice() and repeat() have no other form for it.
bool is_empty(const PatternPtr& pattern) {
  return pattern->kind == Pattern::Kind::kSequence && pattern->parts.empty();
}

// Written as *, + or ?, or without a repetition.
bool is_plain(int least, int most) { return least <= 1 && (most == 1 || most == Pattern::kEndless); }

}  // namespace

PatternPtr one_of(Pattern::Ranges characters) {
  return make({.kind = Pattern::Kind::kCharacters, .characters = std::move(characters)});
}

PatternPtr literal(std::string_view text) {
  std::vector<PatternPtr> parts;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t character = next_code_point(text, at);
    parts.push_back(one_of({{character, character}}));
  }
  return sequence(std::move(parts));
}

PatternPtr sequence(std::vector<PatternPtr> parts) {
  std::erase_if(parts, is_empty);
  if (parts.size() == 1) return std::move(parts[0]);
  return make({.kind = Pattern::Kind::kSequence, .parts = std::move(parts)});
}

PatternPtr choice(std::vector<PatternPtr> parts) {
  if (!parts.empty() && std::ranges::all_of(parts, is_empty)) return parts[0];
  return make({.kind = Pattern::Kind::kChoice, .parts = std::move(parts)});
}

PatternPtr repeat(PatternPtr part, int least, int most) {
  if (most != Pattern::kEndless && most < least) return choice({});
  if (is_empty(part) || most == 0) return sequence({});
  // One repetition is equivalent to two, whose automaton would be twice as large.
  if (part->kind == Pattern::Kind::kRepeat && is_plain(least, most) && is_plain(part->least, part->most)) {
    least *= part->least;
    most = std::min(most, part->most);  // kEndless is the smaller number
    part = part->parts[0];
  }
  return make({.kind = Pattern::Kind::kRepeat, .parts = {std::move(part)}, .least = least, .most = most});
}

PatternPtr optional(PatternPtr part) { return repeat(std::move(part), 0, 1); }

PatternPtr both(PatternPtr one, PatternPtr other) {
  return make({.kind = Pattern::Kind::kBoth, .parts = {std::move(one), std::move(other)}});
}

Pattern::Ranges complement(Pattern::Ranges ranges) {
  ranges.emplace_back(0xD800, 0xDFFF);
  std::ranges::sort(ranges);
  Pattern::Ranges rest;
  char32_t next = 0;
  for (const auto& [first, last] : ranges) {
    if (first > next) rest.emplace_back(next, static_cast<char32_t>(first - 1));
    next = std::max<char32_t>(next, last + 1);
  }
  if (next <= 0x10FFFF) rest.emplace_back(next, 0x10FFFF);
  return rest;
}

}  // namespace zoo
