#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/training/metrics/meters.h"
#include "data/base/error.h"

namespace zoo {

/// A text with the name that decides how it is read.
struct Source {
  std::string text, name;
  bool is_table() const { return name.ends_with(".jsonl") || name.ends_with(".tsv"); }
};

/// Names that --dataset takes in place of a file: corpora and toy sets.
std::vector<std::string> dataset_names();

/// Reads --dataset: a file, a corpus, or a toy set, which is made. Throws Error naming it.
Source read_source(const std::string& dataset, Task task);

/// The parts of a dataset, of which `V` is a record, a sentence or a question, with the names for messages.
template <class V>
struct Parts {
  std::vector<V> train, val;
  std::string train_name, val_name;
};

/// Parses the source and, where there is one, the validation's; without it some of the source's examples are
/// kept apart. With `evaluates` all of it is the validation.
template <class V, class Parse>
Parts<V> divide(const Source& source, const std::optional<Source>& validation, bool evaluates, Parse parse) {
  Parts<V> parts{parse(source), {}, source.name, source.name};
  if (evaluates) {
    parts.val = parts.train;
  } else if (validation) {
    parts.val = parse(*validation);
    parts.val_name = validation->name;
  } else {
    if (parts.train.size() < 2)
      throw Error(source.name, ": one example is too few to train and to validate on");
    // Every tenth, and of fewer than ten the last: a file may be sorted by its labels.
    std::vector<V> kept;
    for (std::size_t i = 0; i < parts.train.size(); ++i) {
      const bool last_of_few = parts.train.size() < 10 && i + 1 == parts.train.size();
      (i % 10 == 9 || last_of_few ? parts.val : kept).push_back(std::move(parts.train[i]));
    }
    parts.train = std::move(kept);
  }
  return parts;
}

}  // namespace zoo
