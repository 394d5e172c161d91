#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace zoo {

/// A part of speech and the definitions of its words, in WordNet's order.
struct PartOfSpeech {
  std::string name;  // noun, verb, adjective, adverb
  std::vector<std::string> definitions;
};

using Dictionary = std::array<PartOfSpeech, 4>;

/// Every tenth definition is held out.
enum class DefinitionSet { kTraining, kHeldOut };

/// The definitions in one of WordNet's data files (wndb(5WN)): the gloss of each synset without the quoted
/// examples that follow it. A gloss with examples only is dropped. Throws Error naming `file` and the line of
/// a synset without a gloss.
std::vector<std::string> parse_definitions(std::string_view text, const std::string& file);

/// Reads WordNet 3.0 (Fellbaum, 1998) from Debian's wordnet-base, or from the folder in WNSEARCHDIR, as
/// WordNet's programs do. If a file is missing, throws Error with the installation command.
Dictionary read_dictionary();

/// A table for classification: a line "text\tlabel", then each definition with its part of speech. A repeated
/// definition appears once. The parts of speech are interleaved in proportion to their sizes.
std::string label_definitions(const Dictionary& dictionary, DefinitionSet set);

}  // namespace zoo
