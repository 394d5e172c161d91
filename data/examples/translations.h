#pragma once

/// @file
/// Use:
///
///     std::cout << zoo::make_translations(zoo::PhraseSet::kHeldOut, /*count=*/5, /*seed=*/1);

#include <cstdint>
#include <string>

namespace zoo {

/// No training phrase contains a held-out pair of words (a determiner, adjective or verb with a noun), in any
/// form or position; every held-out phrase contains at least one, such as "the cat". All words are trained.
enum class PhraseSet { kTraining, kHeldOut };

/// `count` lines of a small English grammar with their Spanish, separated by a tab: "the black cats sleep",
/// "los gatos negros duermen". Determiners and adjectives agree with the noun in gender and number, verbs
/// with their subject; adjectives follow the noun; a personal object takes "a", and "a el" becomes "al". A
/// line is a pure function of (set, seed, its number).
std::string make_translations(PhraseSet set, std::int64_t count, std::uint64_t seed);

}  // namespace zoo
