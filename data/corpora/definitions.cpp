#include "data/corpora/definitions.h"

#include <cstdlib>
#include <unordered_set>

#include "data/base/atomic_file.h"
#include "data/base/error.h"
#include "data/base/lines.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kEvery = 10;
constexpr std::string_view kGloss = " | ";

struct DataFile {
  const char *file, *part_of_speech;
};

constexpr std::array<DataFile, 4> kFiles{
    {{"data.noun", "noun"}, {"data.verb", "verb"}, {"data.adj", "adjective"}, {"data.adv", "adverb"}}};

std::string_view trimmed(std::string_view text, const char* ends) {
  const std::size_t first = text.find_first_not_of(ends);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(ends) - first + 1);
}

// Empty if the gloss begins with an example.
std::string_view definition_of(std::string_view gloss) {
  gloss = trimmed(gloss, " ");
  if (gloss.starts_with('"')) return {};
  return trimmed(gloss.substr(0, gloss.find("; \"")), "; ");
}

// The part of speech with the smallest share used so far; the first of equal ones.
std::size_t least_taken(const Dictionary& dictionary, const std::array<std::size_t, 4>& taken) {
  std::size_t least = dictionary.size();
  for (std::size_t part = 0; part < dictionary.size(); ++part) {
    const std::size_t count = dictionary[part].definitions.size();
    if (taken[part] == count) continue;
    if (least == dictionary.size() ||
        (2 * taken[part] + 1) * dictionary[least].definitions.size() < (2 * taken[least] + 1) * count)
      least = part;
  }
  return least;
}

}  // namespace

std::vector<std::string> parse_definitions(std::string_view text, const std::string& file) {
  std::vector<std::string> definitions;
  for (const Line& line : lines_of(text)) {
    if (line.text.starts_with("  ")) continue;  // the licence
    const std::size_t bar = line.text.find(kGloss);
    if (bar == std::string_view::npos)
      throw Error(file, ", line ", line.number, ": expected a synset with its gloss after '", kGloss, "'");
    const std::string_view definition = definition_of(line.text.substr(bar + kGloss.size()));
    if (!definition.empty()) definitions.emplace_back(definition);
  }
  return definitions;
}

Dictionary read_dictionary() {
  const char* own = std::getenv("WNSEARCHDIR");
  const fs::path folder = own == nullptr || *own == '\0' ? "/usr/share/wordnet" : own;
  Dictionary dictionary;
  for (std::size_t part = 0; part < kFiles.size(); ++part) {
    const fs::path path = folder / kFiles[part].file;
    std::error_code error;
    if (!fs::exists(path, error))
      throw Error("the corpus definitions needs WordNet's ", path.string(), ", which is not there; ",
                  "install it with: apt-get install wordnet-base, or set WNSEARCHDIR to its folder");
    dictionary[part] = {kFiles[part].part_of_speech, parse_definitions(read_file(path), path.string())};
  }
  return dictionary;
}

std::string label_definitions(const Dictionary& dictionary, DefinitionSet set) {
  std::string table = "text\tlabel\n";
  std::unordered_set<std::string_view> known;
  std::array<std::size_t, 4> taken{};
  for (std::size_t part; (part = least_taken(dictionary, taken)) < dictionary.size();) {
    const std::string_view definition = dictionary[part].definitions[taken[part]++];
    if (!known.insert(definition).second) continue;
    const bool held_out = known.size() % kEvery == 0;
    if (held_out == (set == DefinitionSet::kHeldOut))
      table.append(definition).append("\t").append(dictionary[part].name).append("\n");
  }
  return table;
}

}  // namespace zoo
