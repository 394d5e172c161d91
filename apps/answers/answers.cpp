#include "apps/answers/answers.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "apps/command/output.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

// Adds "text", "start" and "end" of a part of a UTF-8 text, in characters as Hugging Face counts them.
void add_span(ordered_json& json, const std::string& text, const ByteRange& range) {
  const std::string_view all = text;
  json["text"] = replace_invalid_utf8(all.substr(range.begin, range.end - range.begin));
  json["start"] = count_characters(all.substr(0, range.begin));
  json["end"] = count_characters(all.substr(0, range.end));
}

ordered_json entities_json(const std::string& text, const std::vector<LabelledSpan>& entities) {
  ordered_json list = ordered_json::array();
  for (const LabelledSpan& entity : entities) {
    ordered_json& json = list.emplace_back(ordered_json{{"label", entity.label}, {"score", entity.score}});
    add_span(json, text, entity.range);
  }
  return list;
}

std::string formatted(bool signs, double value, int digits) {
  if (std::isnan(value)) return "-";
  const double unit = std::pow(10.0, digits);
  const double rounded = std::abs(value * unit) < 0.5 ? 0.0 : value;
  return (signs && !std::signbit(rounded) ? "+" : "") + format_text("%.*f", digits, rounded);
}

}  // namespace

std::vector<ordered_json> answers_json(const ClassifyRequest& request,
                                       const std::vector<TextLabels>& labels) {
  std::vector<ordered_json> list;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    ordered_json& json = list.emplace_back(ordered_json{{"text", request.texts[i]}});
    if (!request.pairs.empty() && !request.pairs[i].empty()) json["text_pair"] = request.pairs[i];
    if (labels[i].entities) json["entities"] = entities_json(request.texts[i], *labels[i].entities);
    if (!labels[i].values.empty()) json["value"] = labels[i].values;
    if (labels[i].best) {
      json["label"] = labels[i].best->label;
      json["score"] = labels[i].best->score;
    }
    const std::vector<ScoredLabel>& scores = labels[i].scores;
    for (std::size_t id = 0; id < scores.size(); ++id) {
      const auto& [label, score] = scores[id];
      const bool twice = id > 0 && json["scores"].contains(label);  // some models have labels of one name
      json["scores"][twice ? label + " (" + std::to_string(id) + ")" : label] = score;
    }
  }
  return list;
}

std::vector<ordered_json> answers_json(const AnswerRequest& asked, const std::vector<Answer>& answers) {
  std::vector<ordered_json> list;
  for (const Answer& answer : answers) {
    add_span(list.emplace_back(), asked.context, answer.range);
    list.back()["score"] = answer.score;
  }
  return list;
}

std::vector<ordered_json> answers_json(const RankRequest& asked,
                                       const std::vector<RankedDocument>& documents) {
  std::vector<ordered_json> list;
  for (const auto& [index, score] : documents)
    list.push_back({{"index", index}, {"score", score}, {"document", asked.documents[index]}});
  return list;
}

ordered_json answer_json(const FillMaskRequest& request, const std::vector<std::vector<MaskGuess>>& masks) {
  ordered_json json{{"text", request.text}, {"masks", ordered_json::array()}};
  for (const auto& guesses : masks) {
    ordered_json& list = json["masks"].emplace_back(ordered_json::array());
    for (const auto& [id, probability, token, text] : guesses)
      list.push_back({{"token", token}, {"id", id}, {"score", probability}, {"text", text}});
  }
  return json;
}

ordered_json translation_json(const std::string& text, const std::string& translation, const TokenIds& ids) {
  return {{"text", text}, {"translation", translation}, {"ids", ids}};
}

std::string decimal(double value, int digits) { return formatted(/*signs=*/false, value, digits); }

std::string decimal(const at::Tensor& value, int digits) { return decimal(value.item<double>(), digits); }

std::string signed_decimal(const at::Tensor& value, int digits) {
  return formatted(/*signs=*/true, value.item<double>(), digits);
}

std::vector<double> numbers_of(const at::Tensor& values) {
  const at::Tensor numbers = values.detach().cpu().to(at::kDouble).contiguous();
  return {numbers.const_data_ptr<double>(), numbers.const_data_ptr<double>() + numbers.numel()};
}

std::vector<std::vector<double>> matrix_of(const at::Tensor& values) {
  std::vector<std::vector<double>> rows;
  for (std::int64_t i = 0; i < values.size(0); ++i) rows.push_back(numbers_of(values[i]));
  return rows;
}

nlohmann::ordered_json json_numbers(const at::Tensor& values) {
  if (values.dim() == 1) return numbers_of(values);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (std::int64_t i = 0; i < values.size(0); ++i) rows.push_back(json_numbers(values[i]));
  return rows;
}

}  // namespace zoo
