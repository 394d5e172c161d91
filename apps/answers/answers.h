#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <nlohmann/json_fwd.hpp>

#include "models/tasks/answer.h"
#include "models/tasks/classify.h"
#include "models/tasks/fill_mask.h"
#include "models/tasks/search/rank.h"

namespace zoo {

// Results of tasks as the command line's --json and HTTP write them.

/// For each text {"text", "text_pair" if it has one} with "label", "score", "scores", or "value" of a
/// regression, or "entities".
std::vector<nlohmann::ordered_json> answers_json(const ClassifyRequest& request,
                                                 const std::vector<TextLabels>& labels);

/// For each answer {"text", "start", "end", "score"}.
std::vector<nlohmann::ordered_json> answers_json(const AnswerRequest& asked,
                                                 const std::vector<Answer>& answers);

/// For each document, best first, {"index", counted from 0, "score", "document"}.
std::vector<nlohmann::ordered_json> answers_json(const RankRequest& asked,
                                                 const std::vector<RankedDocument>& documents);

/// {"text", "masks": [[{"token", "id", "score", "text"}, …], …]}
nlohmann::ordered_json answer_json(const FillMaskRequest& request,
                                   const std::vector<std::vector<MaskGuess>>& masks);

/// {"text", "translation", "ids"}
nlohmann::ordered_json translation_json(const std::string& text, const std::string& translation,
                                        const TokenIds& ids);

/// The value with this many digits after the point; "-" for NaN. A negative zero has no sign.
std::string decimal(double value, int digits);
std::string decimal(const at::Tensor& value, int digits);

/// The same with a sign.
std::string signed_decimal(const at::Tensor& value, int digits);

/// Numbers of a tensor, and those of its rows.
std::vector<double> numbers_of(const at::Tensor& values);
std::vector<std::vector<double>> matrix_of(const at::Tensor& values);

/// Numbers of a tensor [N] or rows of one [N, M] as JSON.
nlohmann::ordered_json json_numbers(const at::Tensor& values);

}  // namespace zoo
