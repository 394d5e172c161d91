#include <iostream>

#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <nlohmann/json.hpp>

#include "apps/command/flags.h"
#include "apps/verbs/text/text_input.h"
#include "apps/verbs/text/text_model.h"
#include "apps/verbs/text/text_spans.h"
#include "apps/verbs/verbs.h"
#include "data/base/error.h"
#include "data/base/json_text.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kTextsAtOnce = 1024;

struct ClassifyFlags {
  std::filesystem::path model;
  TextFlags text;
  std::int64_t batch_size = 32;
  PackedWeights weights;
  ComputeOptions compute;
};

bool read_flags(const Arguments& arguments, ClassifyFlags& values) {
  Flags flags(arguments.command,
              "Labels texts with a sequence-classification model, or words with a token-classification "
              "model. Prints one JSON object per text.");
  flags.add("model", values.model, "checkpoint directory").placeholder("DIR").required();
  add_text_flags(flags, values.text);
  flags.add("batch_size", values.batch_size, "texts per batch").at_least(1);
  values.weights.add_to(flags);
  flags.add_compute(values.compute);
  flags.example("tzoo classify --model runs/reviews/final --text \"A pleasure from start to end.\"");
  return flags.parse(arguments);
}

std::string label_name(const TransformerConfig& config, std::int64_t label) {
  if (config.label_names.empty()) return "LABEL_" + std::to_string(label);
  return config.label_names[static_cast<std::size_t>(label)];
}

// Describes logits [num_labels] of one text by the model's problem type.
void describe_sequence(const TransformerConfig& config, const at::Tensor& logits, Json& json) {
  const bool regression = config.problem_type == ProblemType::kRegression ||
                          (config.problem_type == ProblemType::kByLabels && config.num_labels == 1);
  if (regression) {
    json["value"] =
        std::vector<float>(logits.const_data_ptr<float>(), logits.const_data_ptr<float>() + logits.numel());
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

// "B-PER" and "I-PER" are of kind "PER"; a label without a prefix is its own kind.
std::string kind_of(const std::string& label) {
  return label.starts_with("B-") || label.starts_with("I-") ? label.substr(2) : label;
}

struct Word {
  ByteRange range;
  std::int64_t label;
  float score;
};

// A word has the label of its first token.
std::vector<Word> words_of(const Encoding& encoding, const at::Tensor& scores) {
  std::vector<Word> words;
  std::int32_t last = -1;
  for (std::size_t i = 0; i < encoding.size(); ++i) {
    if (encoding.texts[i] != 0) continue;
    const std::int32_t word = encoding.words.empty() ? static_cast<std::int32_t>(i) : encoding.words[i];
    if (word == last && !words.empty()) {
      words.back().range.end = encoding.offsets[i].end;
      continue;
    }
    last = word;
    const at::Tensor row = scores[static_cast<std::int64_t>(i)];
    const auto best = row.argmax().item<std::int64_t>();
    words.push_back({encoding.offsets[i], best, row[best].item<float>()});
  }
  return words;
}

// Consecutive words of one kind form an entity, unless the next word begins a new one; "O" is none.
Json entities_of(const TransformerConfig& config, const std::string& text, const std::vector<Word>& words) {
  struct Entity {
    std::string kind;
    ByteRange range;
    float score;
    int words;
  };
  std::vector<Entity> entities;
  std::string before;
  for (const Word& word : words) {
    const std::string label = label_name(config, word.label), kind = kind_of(label);
    if (label != "O") {
      if (kind == before && !label.starts_with("B-")) {
        entities.back().range.end = word.range.end;
        entities.back().score += word.score;
        ++entities.back().words;
      } else {
        entities.push_back({kind, word.range, word.score, 1});
      }
    }
    before = label == "O" ? "" : kind;
  }
  Json list = Json::array();
  for (const Entity& entity : entities) {
    Json json;
    json["label"] = entity.kind;
    json["score"] = entity.score / static_cast<float>(entity.words);
    add_span(json, text, entity.range);
    list.push_back(json);
  }
  return list;
}

std::vector<Json> classify(const TextModel& model, const std::vector<std::string>& texts,
                           std::size_t batch_size) {
  const TransformerConfig& config = model.model->config();
  const bool tokens = model.head == Head::kTokenClassification;
  std::vector<Encoding> encodings;
  for (const std::string& text : texts) {
    encodings.push_back(
        model.tokenizer->encode(text, {.max_length = model.max_length(), .with_offsets = tokens}));
  }
  const std::vector<std::size_t> order = by_length(encodings);
  std::vector<Json> results(texts.size());
  for (std::size_t begin = 0; begin < order.size(); begin += batch_size) {
    std::vector<const Encoding*> batch;
    for (std::size_t i = begin; i < std::min(begin + batch_size, order.size()); ++i) {
      batch.push_back(&encodings[order[i]]);
    }
    const at::Tensor logits =
        model.model->forward(batch_of(model, batch)).logits.to(at::kFloat).cpu().contiguous();
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const std::size_t text = order[begin + i];
      const at::Tensor row = logits[static_cast<std::int64_t>(i)];
      results[text]["text"] = texts[text];
      if (tokens) {
        results[text]["entities"] =
            entities_of(config, texts[text], words_of(encodings[text], at::softmax(row, -1)));
      } else {
        describe_sequence(config, row, results[text]);
      }
    }
  }
  return results;
}

}  // namespace

int run_classify(const Arguments& arguments) {
  ClassifyFlags flags;
  if (!read_flags(arguments, flags)) return 0;
  const at::NoGradGuard no_grad;
  const TextModel model = load_text_model(flags.model, flags.compute, flags.weights);
  if (model.head != Head::kSequenceClassification && model.head != Head::kTokenClassification) {
    throw Error("--model: ", flags.model, " has a ", name_of(model.head),
                " head; expected sequence-classification or token-classification");
  }
  TextInput input(flags.text);
  for (auto texts = input.next(kTextsAtOnce); !texts.empty(); texts = input.next(kTextsAtOnce)) {
    for (const Json& json : classify(model, texts, static_cast<std::size_t>(flags.batch_size))) {
      std::cout << json_text(json) << "\n";
    }
  }
  return 0;
}

}  // namespace zoo
