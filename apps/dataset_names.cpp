#include "apps/dataset_names.h"

#include "data/corpora.h"
#include "data/generators.h"

namespace zoo {

std::vector<std::string> corpus_names() {
  std::vector<std::string> names;
  for (const Corpus& corpus : corpora()) names.push_back(corpus.name);
  return names;
}

std::vector<std::string> toy_set_names() {
  std::vector<std::string> names;
  for (const ToySet& set : toy_sets()) names.push_back(set.name);
  return names;
}

std::vector<std::string> dataset_names() {
  std::vector<std::string> names = corpus_names();
  for (std::string& name : toy_set_names()) names.push_back(std::move(name));
  return names;
}

}  // namespace zoo
