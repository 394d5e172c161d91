#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/training/objective.h"
#include "models/model.h"

namespace zoo {

/// What a model is trained for.
enum class Task {
  kLm,
  kMlm,
  kSpanCorruption,
  kSeq2Seq,
  kClassification,
  kTokenClassification,
  kQuestionAnswering,
};

/// "lm", "mlm", …, in the order of Task.
const std::vector<std::string>& task_names();
/// Throws Error with the nearest name for one that is not a task's.
Task task_named(const std::string& name);

/// Gathers figures over the batches of an evaluation.
class Meter {
 public:
  virtual ~Meter() = default;
  virtual void add(const ModelInputs& inputs, const ModelOutput& output) = 0;
  /// The figures of what was added since the last call. `loss` is the mean loss of it.
  virtual std::vector<Score> take(double loss) = 0;
};

/// The figures of a task:
///   lm                   perplexity
///   mlm span_corruption  perplexity; accuracy of the predicted tokens
///   seq2seq              the same; exact_match, the share of the targets whose every token is predicted from
///                        the ones before it, which are those that greedy decoding gives
///   classification       accuracy; f1, the mean of the classes' (macro)
///   token_classification accuracy of the tokens; f1 of the entities (Tjong Kim Sang and De Meulder, 2003)
///   question_answering   exact_match and f1 of the tokens of the answers (Rajpurkar et al., 2016)
/// `label_names` are the classes'.
std::unique_ptr<Meter> make_meter(Task task, const std::vector<std::string>& label_names);

/// A row of words with one label.
struct Entity {
  std::string kind;
  std::int64_t begin, end;
  bool operator==(const Entity&) const = default;
};

/// Words of one kind that follow each other, unless the next begins a new one: "B-PER" begins, "I-PER" goes
/// on, "PER" is a kind of its own, "O" none. A negative label ends an entity.
std::vector<Entity> entities_of(const std::vector<std::int64_t>& labels,
                                const std::vector<std::string>& names);

}  // namespace zoo
