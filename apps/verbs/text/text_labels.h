#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/tasks/run_piece.h"
#include "apps/verbs/text/text_model.h"
#include "models/tasks/token_entities.h"

namespace zoo {

/// "none", "simple", "first", "average" or "max".
Aggregation aggregation_named(const std::string& name);

struct LabelOptions {
  std::int64_t batch_size = 32;
  Aggregation aggregation = Aggregation::kFirst;  // of token classification
};

/// True for a model that labels texts or the words in them.
bool labels_texts(const TextModel& model);

/// For each text {"text", "label", "score", "scores"}, or "value" of a regression, or "entities". `pairs` has
/// the second text of each, "" for none, or is empty; a piece is a batch. Throws Error naming a text without
/// tokens, or a pair that the model would label word by word.
std::vector<nlohmann::ordered_json> label_texts(const TextModel& model, const std::vector<std::string>& texts,
                                                const std::vector<std::string>& pairs,
                                                const LabelOptions& options,
                                                const RunPiece& run = run_at_once);

}  // namespace zoo
