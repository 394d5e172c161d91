#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace zoo {

/// A part of speech with the definitions of its words, in WordNet's order.
struct PartOfSpeech {
  std::string name;  // noun, verb, adjective, adverb
  std::vector<std::string> definitions;
};

using Dictionary = std::array<PartOfSpeech, 4>;

/// Every tenth definition, the tenth the first, is held out.
enum class DefinitionSet { kTraining, kHeldOut };

/// The definitions in one of WordNet's data files (wndb(5WN)): of each synset the gloss without the examples
/// in quotation marks behind it. A gloss that has nothing else is left out. Throws Error naming `file` and
/// the line of a synset without a gloss.
std::vector<std::string> parse_definitions(std::string_view text, const std::string& file);

/// WordNet 3.0 (Fellbaum, 1998) as Debian's wordnet-base installs it, or in the folder that WNSEARCHDIR
/// names, as for the programs of WordNet. Throws Error that says how to install it where a file is missing.
Dictionary read_dictionary();

/// A table to classify: a line "text\tlabel", then each definition with its part of speech, once even if
/// several words have it. The parts of speech come side by side, each as far as the others.
std::string label_definitions(const Dictionary& dictionary, DefinitionSet set);

}  // namespace zoo
