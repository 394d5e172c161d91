#pragma once

#include <nlohmann/json_fwd.hpp>

#include "models/analysis/attribution.h"
#include "models/tasks/look_answers.h"

namespace zoo {

/// Shares of an answer's logit, on the CPU.
struct AttributionTable {
  NamedLogit answer;
  analysis::LogitAttribution shares;
};

/// Throws c10::Error for a model whose logits are no sum of shares (see analysis::attribute_logit).
AttributionTable attribution_table(const TextModel& model, const analysis::Run& run, const NamedLogit& answer,
                                   std::int64_t position);

/// Prints the shares of the sublayers, and of the heads a column each.
void print(const AttributionTable& table);

nlohmann::ordered_json json_of(const AttributionTable& table);

}  // namespace zoo
