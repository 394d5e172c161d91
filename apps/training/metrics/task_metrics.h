#pragma once

/// @file
/// Use:
///
///     const auto metric = zoo::make_metric(zoo::Task::kClassification, {"negative", "positive"});
///     metric->add(inputs, model->forward(inputs));
///     for (const zoo::Score& score : metric->take(/*loss=*/0.5))
///       std::cout << score.name << score.value << "\n";

#include <memory>
#include <string>
#include <vector>

#include "apps/training/objective.h"
#include "models/model.h"

namespace zoo {

enum class Task {
  kLm,
  kMlm,
  kSpanCorruption,
  kSeq2Seq,
  kClassification,
  kTokenClassification,
  kQuestionAnswering,
  kChat,
  kEmbedding,
  kRanking,
  kPreference,
};

/// In the order of Task.
inline const std::vector<std::string> kTaskNames{"lm",
                                                 "mlm",
                                                 "span_corruption",
                                                 "seq2seq",
                                                 "classification",
                                                 "token_classification",
                                                 "question_answering",
                                                 "chat",
                                                 "embedding",
                                                 "ranking",
                                                 "preference"};
inline const std::string& name_of(Task task) { return kTaskNames[static_cast<std::size_t>(task)]; }

/// Accumulates metrics over the batches of an evaluation.
class Metric {
 public:
  virtual ~Metric() = default;
  virtual void add(const ModelInputs& inputs, const ModelOutput& output) = 0;
  /// The sums of these batches, so that those of several metrics can be added.
  virtual std::vector<double*> totals() = 0;
  /// Metrics of the batches added since the last call. `loss` is their mean loss.
  virtual std::vector<Score> take(double loss) = 0;
};

/// Metrics of a task:
///   lm chat              perplexity; bits_per_byte, comparable among tokenizers, of texts of known bytes
///   mlm span_corruption  perplexity; accuracy of the predicted tokens
///   seq2seq              the same; exact_match, the share of targets with every token predicted from the
///                        ones before it; greedy decoding gives exactly these targets
///   classification       accuracy; macro f1, the mean over the classes that are labels or predictions. Of
///                        multi-label models accuracy of all labels of a text, f1 (macro, over all labels)
///                        and f1_micro; of regressions pearson's correlation and mean_absolute_error
///   token_classification accuracy of the tokens; f1 of the entities (Tjong Kim Sang and De Meulder, 2003)
///   question_answering   exact_match and f1 of the answer tokens (Rajpurkar et al., 2016; 2018: without an
///                        answer they are equal)
/// `label_names` are the names of the classes; `bytes_per_token` of the texts to evaluate, 0: unknown.
std::unique_ptr<Metric> make_metric(Task task, const std::vector<std::string>& label_names,
                                    double bytes_per_token = 0, ProblemType problem = ProblemType::kByLabels);

/// A run of words with one label.
struct Entity {
  std::string kind;
  std::int64_t begin, end;
  bool operator==(const Entity&) const = default;
};

/// Consecutive words of one kind form an entity: "B-PER" begins one, "I-PER" continues it, "E-PER" is its
/// last word, "S-PER" its only one, "PER" is a kind of its own, "O" is none. A negative label ends an entity.
/// As in seqeval's default mode.
std::vector<Entity> entities_of(const std::vector<std::int64_t>& labels,
                                const std::vector<std::string>& names);

/// Corpus BLEU (Papineni et al., 2002), in [0, 1]: the geometric mean of the precisions of 1- to 4-grams of
/// words separated by blanks, times exp(1 - wanted / written) if the output is shorter than the reference.
/// One reference per text; 0 without a common 4-gram.
double bleu(const std::vector<std::string>& written, const std::vector<std::string>& wanted);

}  // namespace zoo
