#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/training/metrics/task_metrics.h"
#include "data/base/error.h"
#include "data/tokens/token_dataset.h"

namespace zoo {

/// A text, mapped or generated, and a name, which decides how to parse the text.
struct Source {
  std::shared_ptr<const void> owner;
  std::string_view text;
  std::string name;
  bool is_table() const { return name.ends_with(".jsonl") || name.ends_with(".tsv"); }
};

/// Built-in datasets for --dataset: corpora and toy sets.
std::vector<std::string> dataset_names();

/// Reads --dataset: a file, a corpus or a generated toy set. Throws Error naming it.
Source read_source(const std::string& dataset, Task task);

/// SHA-256 of up to 16 MiB; of more, of its size and 16 pieces of 1 MiB between its start and its end.
std::string fingerprint(std::string_view bytes);

/// The ids of a larger text would take four times its size in memory, or more.
inline constexpr std::size_t kLargeText = 64'000'000;

/// Ids of a text that is larger, on disk while the program runs.
TokenFile encode_large(const Tokenizer& tokenizer, const TextEncoder& encoder, std::string_view text,
                       const std::string& name);

/// Encodes a file's text; an error names the file.
TokenFile encode_file(const Tokenizer& tokenizer, std::string_view text, const std::string& name);

/// The same of both splits.
TokenDataset tokenize_file(const Tokenizer& tokenizer, std::string_view text, const std::string& name);

/// The splits of a dataset and names for messages; `V` is a record, a sentence or a question.
template <class V> struct Parts {
  std::vector<V> train, val;
  std::string train_name, val_name;
};

/// Parses the source and its validation file; without one, some of the source's examples are held out. With
/// `evaluates` all examples are validation.
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
    // Every tenth example, or the last of fewer than ten: a file may be sorted by label.
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
