#pragma once

#include <functional>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "models/tasks/look_texts.h"

namespace zoo {

/// Logits of everything that a model can answer at a place, and their names.
struct LookAnswer {
  std::string kind;   // "token", "label" or "span"
  at::Tensor logits;  // [N], float32, on the CPU
  std::function<std::string(std::int64_t)> name;
};

/// Where the answer is, and how it is written.
struct LookPlace {
  const ModelTexts& texts;
  const TextInputs& read;
  std::int64_t position;
  std::function<std::string(std::int64_t)> token_name;
};

/// Distribution of the next or masked token, of the label, or of the part of text_pair that answers the
/// question in text. Nothing for a head whose output is no distribution.
std::optional<LookAnswer> look_answer(const TextModel& model, const LookPlace& place,
                                      const ModelOutput& output);

/// {"kind", "count", "ids", "names", "logits", "rest"}: the answers with the largest logits, and in `rest`
/// the others' as base64 of float32, so that a reader can apply temperature and filters itself. With `plain`,
/// the answer of the untouched model, also its logits of the same ids, the rest and the divergence in bits.
nlohmann::ordered_json json_of(const LookAnswer& answer, const std::optional<LookAnswer>& plain);

}  // namespace zoo
