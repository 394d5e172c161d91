#pragma once

#include <cstdint>
#include <string>

namespace zoo {

/// Which phrases of the grammar. Of some pairs of words (a determiner, an adjective or a verb with a noun)
/// none of the training's phrases holds both, in whatever form and wherever they stand, and each of the
/// held-out phrases holds at least one such pair: "the cat". Every word is in the training, beside others.
enum class PhraseSet { kTraining, kHeldOut };

/// `count` lines of a small English grammar with their Spanish, a tab between: "the black cats sleep",
/// "los gatos negros duermen". Determiners and adjectives agree with the noun in gender and number and verbs
/// with their subject, adjectives stand behind the noun, a person that something is done to takes "a", and
/// "a el" is "al". A line is a pure function of (set, seed, its number).
std::string make_translations(PhraseSet set, std::int64_t count, std::uint64_t seed);

}  // namespace zoo
