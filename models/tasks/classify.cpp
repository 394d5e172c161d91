#include "models/tasks/classify.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>

#include "data/base/field_error.h"
#include "models/model.h"
#include "models/tasks/inference_loading.h"
#include "models/tasks/look_texts.h"

namespace zoo {
namespace {

// transformers' rule. Where a vocabulary marks the tokens inside a word, those are longer than their text; of
// other vocabularies only spaces tell where a word begins.
bool continues_word(const Tokenizer& tokenizer, const std::string& text, TokenId id, const ByteRange& range) {
  if (tokenizer.special_id(SpecialToken::unk) == id) return false;
  if (tokenizer.marks_subwords()) {
    const std::string_view written = std::string_view(text).substr(range.begin, range.end - range.begin);
    return count_characters(tokenizer.token_text(id)) != count_characters(written);
  }
  const bool after_space = range.begin > 0 && text[range.begin - 1] == ' ';
  return range.begin > 0 && !after_space && (range.begin == text.size() || text[range.begin] != ' ');
}

// Tokens of a word: rows of the scores.
using Rows = std::vector<std::int64_t>;

// With `by_token` each token is a word by itself.
std::vector<Rows> words_of(const Tokenizer& tokenizer, const std::string& text, const Encoding& encoding,
                           bool by_token) {
  std::vector<Rows> words;
  for (std::size_t i = 0; i < encoding.size(); ++i) {
    if (encoding.texts[i] != 0) continue;
    const bool continues = !by_token && continues_word(tokenizer, text, encoding.ids[i], encoding.offsets[i]);
    if (words.empty() || !continues) words.emplace_back();
    words.back().push_back(static_cast<std::int64_t>(i));
  }
  return words;
}

at::Tensor word_scores(const at::Tensor& scores, const Rows& word, Aggregation aggregation) {
  if (word.size() == 1 || aggregation == Aggregation::kFirst) return scores[word.front()];
  const at::Tensor all = scores.slice(0, word.front(), word.back() + 1);
  if (aggregation == Aggregation::kAverage) return all.mean(0);
  return all[all.amax(-1).argmax().item<std::int64_t>()];
}

// "B-PER" and "I-PER" are of kind "PER"; a label without a prefix is its own kind.
std::string kind_of(const std::string& label) {
  return label.starts_with("B-") || label.starts_with("I-") ? label.substr(2) : label;
}

// Neighbours of one kind form an entity, unless the next one begins a new one.
std::vector<LabelledSpan> grouped(const std::vector<LabelledSpan>& parts) {
  std::vector<LabelledSpan> entities;
  for (std::size_t begin = 0, end = 0; begin < parts.size(); begin = end) {
    double sum = 0;
    do {
      sum += parts[end++].score;
    } while (end < parts.size() && kind_of(parts[end].label) == kind_of(parts[end - 1].label) &&
             !parts[end].label.starts_with("B-"));
    const std::string& label = parts[begin].label;
    entities.push_back(
        {label.substr(label.find('-') + 1),  // what follows a hyphen, whatever stands before it
         static_cast<float>(sum / static_cast<double>(end - begin)),
         {parts[begin].range.begin, parts[end - 1].range.end}});
  }
  return entities;
}

// The entities of a text, in order, without those labelled "O". scores [T, num_labels]: probabilities.
std::vector<LabelledSpan> entities_of(const TransformerConfig& config, const Tokenizer& tokenizer,
                                      const std::string& text, const Encoding& encoding,
                                      const at::Tensor& scores, Aggregation aggregation) {
  const bool by_token = aggregation == Aggregation::kNone || aggregation == Aggregation::kSimple;
  std::vector<LabelledSpan> parts;
  for (const Rows& word : words_of(tokenizer, text, encoding, by_token)) {
    const auto offsets = [&](std::int64_t row) { return encoding.offsets[static_cast<std::size_t>(row)]; };
    const at::Tensor own = word_scores(scores, word, aggregation);
    const auto best = own.argmax().item<std::int64_t>();
    parts.push_back({label_name(config, best),
                     own[best].item<float>(),
                     {offsets(word.front()).begin, offsets(word.back()).end}});
  }
  std::vector<LabelledSpan> entities = aggregation == Aggregation::kNone ? parts : grouped(parts);
  std::erase_if(entities, [](const LabelledSpan& entity) { return entity.label == "O"; });
  return entities;
}

// Labels by the logits [num_labels] of one text.
TextLabels sequence_labels(const TransformerConfig& config, const at::Tensor& logits, bool raw_scores) {
  TextLabels labels;
  const bool regression = config.problem_type == ProblemType::kRegression ||
                          (config.problem_type == ProblemType::kByLabels && config.num_labels == 1);
  if (regression || raw_scores) {
    labels.values.assign(logits.const_data_ptr<float>(), logits.const_data_ptr<float>() + logits.numel());
    // A single label may also be a yes or no; only problem_type tells.
    if (config.problem_type == ProblemType::kByLabels && !raw_scores)
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

// A decoder finds the last token of each row by pad_token_id; where that does not tell, rows go one by one.
std::size_t rows_at_once(const TextModel& model, std::int64_t batch_size) {
  const TransformerConfig& config = model.model->config();
  const bool finds_padding = config.pad_token_id >= 0 && config.pad_token_id < config.vocab_size;
  return config.shape == Shape::kDecoder && !finds_padding ? 1 : static_cast<std::size_t>(batch_size);
}

}  // namespace

const std::vector<std::string>& aggregation_names() {
  static const std::vector<std::string> names{"none", "simple", "first", "average", "max"};
  return names;
}

std::string label_name(const TransformerConfig& config, std::int64_t label) {
  if (config.label_names.empty()) return "LABEL_" + std::to_string(label);
  return config.label_names[static_cast<std::size_t>(label)];
}

void require_labels(const TextModel& model) {
  require_head(model.checkpoint.directory, model.head,
               {Head::kSequenceClassification, Head::kTokenClassification});
}

std::vector<TextLabels> classify(const TextModel& model, const ClassifyRequest& request, const RunPass& run) {
  require_labels(model);
  const TransformerConfig& config = model.model->config();
  const bool tokens = model.head == Head::kTokenClassification;
  require_in(at_least(1), "batch_size", request.batch_size);
  if (!request.pairs.empty() && request.pairs.size() != request.texts.size())
    throw FieldError(Field{"pairs"}, ": ", request.pairs.size(), " for ", request.texts.size(), " texts");
  std::vector<Encoding> encodings;
  const std::size_t most = model.max_length();
  const EncodeOptions encode{.max_length = request.truncates ? std::optional(most) : std::nullopt,
                             .with_offsets = tokens};
  const std::vector<std::string>& texts = request.texts;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string &text = texts[i], pair = request.pairs.empty() ? "" : request.pairs[i];
    if (tokens && !pair.empty())
      throw Error("text_pair: expected none, since the model labels the words of one text; got '", pair, "'");
    encodings.push_back(pair.empty() ? model.tokenizer->encode(text, encode)
                                     : model.tokenizer->encode_pair(text, pair, encode));
    if (encodings.back().ids.empty()) throw Error("the text '", text, "' has no tokens, so it has no label");
    if (!request.truncates && encodings.back().size() > most)
      throw TokenCountError("texts", encodings.back().size(), static_cast<std::int64_t>(most));
    if (tokens) require_offsets(encodings.back());
  }
  const auto logits_of = [&model](std::span<const Encoding* const> batch) {
    const at::NoGradGuard no_grad;
    return model.model->forward(batch_of(model, batch)).logits.to(at::kFloat).cpu().contiguous().unbind();
  };
  const std::vector<at::Tensor> logits = run({.compute = logits_of,
                                              .model = model.model.get(),
                                              .most_texts = rows_at_once(model, request.batch_size)},
                                             encodings);
  std::vector<TextLabels> results(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (tokens)
      results[i].entities = entities_of(config, *model.tokenizer, texts[i], encodings[i],
                                        at::softmax(logits[i], -1), request.aggregation);
    else results[i] = sequence_labels(config, logits[i], request.raw_scores);
  }
  return results;
}

}  // namespace zoo
