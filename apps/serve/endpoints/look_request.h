#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/serve/request_fields.h"
#include "models/analysis/ablation.h"
#include "models/tasks/look_texts.h"

namespace zoo {

/// A state that is taken from another text's run.
struct LookPatch {
  std::string text;
  Site site;
  std::vector<std::int64_t> positions;  // ascending; empty: all
};

/// Fields of POST /look, by the flags of `tzoo ablate` and `tzoo patch`.
struct LookRequest {
  ModelTexts texts;
  std::optional<std::int64_t> position;  // of the answer
  Shape stack = Shape::kDecoder;         // that is opened and touched
  std::optional<std::int64_t> layer;     // whose attention is sent
  std::vector<Site> off;
  analysis::Ablation with = analysis::Ablation::kZero;
  std::optional<LookPatch> patch;
};

/// Throws ApiError and Error for what the model lacks.
LookRequest read_look(RequestFields& fields, const TextModel& model);

}  // namespace zoo
