#include "models/tasks/classify.h"

#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>

#include "data/base/error.h"

namespace zoo {
namespace {

// Labels by the logits [num_labels] of one text.
TextLabels sequence_labels(const TransformerConfig& config, const at::Tensor& logits) {
  TextLabels labels;
  const bool regression = config.problem_type == ProblemType::kRegression ||
                          (config.problem_type == ProblemType::kByLabels && config.num_labels == 1);
  if (regression) {
    labels.values.assign(logits.const_data_ptr<float>(), logits.const_data_ptr<float>() + logits.numel());
    // A single label may also be a yes or no; only problem_type tells.
    if (config.problem_type == ProblemType::kByLabels)
      labels.scores.push_back({label_name(config, 0), at::sigmoid(logits)[0].item<float>()});
    return labels;
  }
  const bool several = config.problem_type == ProblemType::kMultiLabel;
  const at::Tensor scores = several ? at::sigmoid(logits) : at::softmax(logits, 0);
  for (std::int64_t i = 0; i < scores.numel(); ++i)
    labels.scores.push_back({label_name(config, i), scores[i].item<float>()});
  if (!several) labels.best = labels.scores[static_cast<std::size_t>(scores.argmax().item<std::int64_t>())];
  return labels;
}

// A decoder finds the last token of each row by pad_token_id; where padding cannot be told by it, rows go one
// by one.
std::size_t rows_at_once(const TextModel& model, std::int64_t batch_size) {
  const TransformerConfig& config = model.model->config();
  const bool finds_padding = config.pad_token_id >= 0 && config.pad_token_id < config.vocab_size;
  return config.shape == Shape::kDecoder && !finds_padding ? 1 : static_cast<std::size_t>(batch_size);
}

}  // namespace

bool labels_texts(const TextModel& model) {
  return model.head == Head::kSequenceClassification || model.head == Head::kTokenClassification;
}

std::vector<TextLabels> classify(const TextModel& model, const ClassifyRequest& request,
                                 const RunPiece& run) {
  const std::size_t batch_size = rows_at_once(model, request.batch_size);
  const TransformerConfig& config = model.model->config();
  const bool tokens = model.head == Head::kTokenClassification;
  std::vector<Encoding> encodings;
  const EncodeOptions encode{.max_length = model.max_length(), .with_offsets = tokens};
  const std::vector<std::string>& texts = request.texts;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string &text = texts[i], pair = request.pairs.empty() ? "" : request.pairs[i];
    if (tokens && !pair.empty())
      throw Error("text_pair: expected none, since the model labels the words of one text; got '", pair, "'");
    encodings.push_back(pair.empty() ? model.tokenizer->encode(text, encode)
                                     : model.tokenizer->encode_pair(text, pair, encode));
    if (encodings.back().ids.empty()) throw Error("the text '", text, "' has no tokens, so it has no label");
    if (tokens) require_offsets(encodings.back());
  }
  const std::vector<std::size_t> order = by_length(encodings);
  std::vector<TextLabels> results(texts.size());
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
        if (tokens)
          results[text].entities = entities_of(config, *model.tokenizer, texts[text], encodings[text],
                                               at::softmax(row, -1), request.aggregation);
        else
          results[text] = sequence_labels(config, row);
      }
    });
  }
  return results;
}

}  // namespace zoo
