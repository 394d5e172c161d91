#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "apps/serve/request_fields.h"
#include "models/analysis/inside_block.h"
#include "models/analysis/sweep.h"
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
  std::optional<std::int64_t> position;     // of the answer
  Shape stack = Shape::kDecoder;            // that is opened and touched
  std::optional<std::int64_t> layer;        // whose attention is sent
  std::optional<std::int64_t> head, query;  // whose weights are explained
  bool crosses = false;                     // a head of cross-attention
  std::vector<Site> off;
  analysis::Ablation with = analysis::Ablation::kZero;
  std::optional<LookPatch> patch;
};

/// Throws ApiError and Error for what the model lacks.
LookRequest read_look(RequestFields& fields, const TextModel& model);

/// Logits of everything that a model can answer at a place, and their names.
struct LookAnswer {
  /// "token", "label" or "span": the logits of one distribution. "labels": each has a probability of its own,
  /// the sigmoid. "score": numbers, of a regression or a reranker.
  std::string kind;
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

/// The numbers' bytes, little-endian, as the processors of this program are.
std::string base64_of(const at::Tensor& numbers);

/// The next or masked token, the label or labels, the score, or the part of text_pair that answers the
/// question in text. Nothing for a head that flags tokens, and for none.
std::optional<LookAnswer> look_answer(const TextModel& model, const LookPlace& place,
                                      const ModelOutput& output);

/// {"kind", "count", "ids", "names", "logits", "rest"}: the answers with the largest logits, and in `rest`
/// the others' as base64 of float32, so that a reader can apply temperature and filters itself. With `plain`,
/// the answer of the untouched model, also its logits of the same ids, the rest and, of distributions,
/// the divergence in bits.
nlohmann::ordered_json json_of(const LookAnswer& answer, const std::optional<LookAnswer>& plain);

/// {"position", "norms", "neurons", "experts"}: lists; `experts` has one for each token.
nlohmann::ordered_json json_of(const analysis::InsideBlock& inside, std::int64_t position,
                               const std::function<std::string(std::int64_t)>& token_name);

}  // namespace zoo
