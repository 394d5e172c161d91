#pragma once

/// @file
/// Use:
///
///     const zoo::TextModel model = zoo::load_text_model(zoo::read_checkpoint_config("bert-reviews"), {});
///     for (const zoo::TextLabels& each : zoo::classify(model, {.texts = {"I did not like it", "Bravo"}}))
///       std::cout << each.best->label << " " << each.best->score << "\n";

#include <optional>
#include <string>
#include <vector>

#include "models/tasks/text_model.h"

namespace zoo {

/// How tokens become entities: the strategies of transformers' token classification pipeline.
enum class Aggregation {
  kNone,     ///< each token by itself, with its whole label
  kSimple,   ///< tokens with labels of one kind
  kFirst,    ///< words, with the label of their first token
  kAverage,  ///< words, with the label of their tokens' mean scores
  kMax,      ///< words, with the label of their surest token
};

/// "none", "simple", "first", "average", "max": in the order of the enum.
const std::vector<std::string>& aggregation_names();

struct LabelledSpan {
  std::string label;  // "B-PER" of a single token, else "PER"
  float score = 0.0F;
  ByteRange range;  // of the text
};

/// Name of a label; "LABEL_0" and so on if the model has none.
std::string label_name(const TransformerConfig& config, std::int64_t label);

struct ClassifyRequest {
  std::vector<std::string> texts;
  std::vector<std::string> pairs;  // the second text of each, "" for none; or empty
  std::int64_t batch_size = 32;
  Aggregation aggregation = Aggregation::kFirst;  // of token classification
  bool truncates = true;                          // texts that are too long; else they are an error
  bool raw_scores = false;                        // the logits of a sequence's labels, as `values`
};

struct ScoredLabel {
  std::string label;
  float score = 0.0F;  // a probability
};

/// Labels of one text, by the model's head and problem type.
struct TextLabels {
  std::optional<ScoredLabel> best;  // of labels that exclude one another
  std::vector<ScoredLabel> scores;  // of all labels; of a regression with one label, its sigmoid
  std::vector<float> values;        // of a regression, or raw
  std::optional<std::vector<LabelledSpan>> entities;  // of token classification, alone
};

/// Throws Error for the head of a model that labels neither texts nor the words in them.
void require_labels(const TextModel& model);

/// Labels of each text, as transformers' pipelines give them. Rows are batched by length; a piece is a batch.
/// Throws Error for another head, for a text without tokens and for a pair that the model would label word by
/// word; FieldError for pairs that are not as many as the texts and for a batch_size below 1; TokenCountError
/// for a text that is too long and not truncated.
std::vector<TextLabels> classify(const TextModel& model, const ClassifyRequest& request,
                                 const RunPass& run = run_at_once);

}  // namespace zoo
