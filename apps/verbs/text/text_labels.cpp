#include "apps/verbs/text/text_labels.h"

#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <nlohmann/json.hpp>

#include "apps/verbs/text/text_spans.h"
#include "data/base/error.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

// Describes logits [num_labels] of one text by the model's problem type.
void describe_sequence(const TransformerConfig& config, const at::Tensor& logits, Json& json) {
  const bool regression = config.problem_type == ProblemType::kRegression ||
                          (config.problem_type == ProblemType::kByLabels && config.num_labels == 1);
  if (regression) {
    json["value"] =
        std::vector<float>(logits.const_data_ptr<float>(), logits.const_data_ptr<float>() + logits.numel());
    // A single label may also be a yes or no; only problem_type tells.
    if (config.problem_type == ProblemType::kByLabels)
      json["scores"][label_name(config, 0)] = at::sigmoid(logits)[0].item<float>();
    return;
  }
  const bool several = config.problem_type == ProblemType::kMultiLabel;
  const at::Tensor scores = several ? at::sigmoid(logits) : at::softmax(logits, 0);
  if (!several) {
    const auto best = scores.argmax().item<std::int64_t>();
    json["label"] = label_name(config, best);
    json["score"] = scores[best].item<float>();
  }
  for (std::int64_t i = 0; i < scores.numel(); ++i)
    json["scores"][label_name(config, i)] = scores[i].item<float>();
}

Json described(const std::string& text, const std::vector<LabelledSpan>& entities) {
  Json list = Json::array();
  for (const LabelledSpan& entity : entities) {
    Json json;
    json["label"] = entity.label;
    json["score"] = entity.score;
    add_span(json, text, entity.range);
    list.push_back(json);
  }
  return list;
}

// A decoder finds the last token of each row by pad_token_id; where padding cannot be told by it, rows go one
// by one.
std::size_t rows_at_once(const TextModel& model, std::int64_t batch_size) {
  const TransformerConfig& config = model.model->config();
  const bool finds_padding = config.pad_token_id >= 0 && config.pad_token_id < config.vocab_size;
  return config.shape == Shape::kDecoder && !finds_padding ? 1 : static_cast<std::size_t>(batch_size);
}

}  // namespace

Aggregation aggregation_named(const std::string& name) {
  if (name == "none") return Aggregation::kNone;
  if (name == "simple") return Aggregation::kSimple;
  if (name == "first") return Aggregation::kFirst;
  return name == "average" ? Aggregation::kAverage : Aggregation::kMax;
}

bool labels_texts(const TextModel& model) {
  return model.head == Head::kSequenceClassification || model.head == Head::kTokenClassification;
}

std::vector<Json> label_texts(const TextModel& model, const std::vector<std::string>& texts,
                              const std::vector<std::string>& pairs, const LabelOptions& options,
                              const RunPiece& run) {
  const std::size_t batch_size = rows_at_once(model, options.batch_size);
  const TransformerConfig& config = model.model->config();
  const bool tokens = model.head == Head::kTokenClassification;
  std::vector<Encoding> encodings;
  const EncodeOptions encode{.max_length = model.max_length(), .with_offsets = tokens};
  const auto pair_of = [&](std::size_t i) { return pairs.empty() ? std::string() : pairs[i]; };
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string &text = texts[i], pair = pair_of(i);
    if (tokens && !pair.empty())
      throw Error("text_pair: expected none, since the model labels the words of one text; got '", pair, "'");
    encodings.push_back(pair.empty() ? model.tokenizer->encode(text, encode)
                                     : model.tokenizer->encode_pair(text, pair, encode));
    if (encodings.back().ids.empty()) throw Error("the text '", text, "' has no tokens, so it has no label");
    if (tokens) require_offsets(encodings.back());
  }
  const std::vector<std::size_t> order = by_length(encodings);
  std::vector<Json> results(texts.size());
  for (std::size_t begin = 0; begin < order.size(); begin += batch_size) {
    std::vector<const Encoding*> batch;
    for (std::size_t i = begin; i < std::min(begin + batch_size, order.size()); ++i) {
      batch.push_back(&encodings[order[i]]);
    }
    run([&] {
      const at::Tensor logits =
          model.model->forward(batch_of(model, batch)).logits.to(at::kFloat).cpu().contiguous();
      for (std::size_t i = 0; i < batch.size(); ++i) {
        const std::size_t text = order[begin + i];
        const at::Tensor row = logits[static_cast<std::int64_t>(i)];
        results[text]["text"] = texts[text];
        if (const std::string pair = pair_of(text); !pair.empty()) results[text]["text_pair"] = pair;
        if (tokens) {
          results[text]["entities"] =
              described(texts[text], entities_of(config, *model.tokenizer, texts[text], encodings[text],
                                                 at::softmax(row, -1), options.aggregation));
        } else {
          describe_sequence(config, row, results[text]);
        }
      }
    });
  }
  return results;
}

}  // namespace zoo
