#include <iostream>

#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>
#include <nlohmann/json.hpp>

#include "apps/command/flags.h"
#include "apps/command/output.h"
#include "apps/command/progress.h"
#include "apps/verbs/text/text_input.h"
#include "apps/verbs/text/text_model.h"
#include "apps/verbs/verbs.h"
#include "data/base/atomic_file.h"
#include "data/base/error.h"
#include "data/base/json_file.h"
#include "data/base/json_text.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

// Texts per read; each read is batched by similar length.
constexpr std::size_t kEmbeddedAtOnce = 4096;

struct EmbedFlags {
  fs::path model;
  TextFlags text;
  std::optional<std::string> pooling;
  std::optional<bool> normalize;
  std::optional<std::int64_t> max_length;
  std::int64_t batch_size = 32;
  bool similarity = false;
  PackedWeights weights;
  ComputeOptions compute;
};

bool read_flags(const Arguments& arguments, EmbedFlags& values) {
  Flags flags(
      arguments.command,
      "Turns texts into vectors with an encoder. Prints one object {\"text\", \"embedding\"} per line.");
  flags.group("Input");
  flags.add("model", values.model, "checkpoint directory").placeholder("DIR").required();
  add_text_flags(flags, values.text);
  flags.add("max_length", values.max_length, "most tokens of a text to read; default: the model's limit")
      .at_least(3);
  flags.group("Embedding");
  flags.choice("pooling", values.pooling, {"mean", "cls"},
               "mean over the tokens, or the first token's state; default: what the model's "
               "1_Pooling/config.json says, else mean");
  flags.add("normalize", values.normalize,
            "scale each vector to length 1; default: what the model's modules.json says, else true");
  flags.add("batch_size", values.batch_size, "texts per batch").at_least(1);
  flags.group("Output");
  flags.add("similarity", values.similarity, "print a table of the cosine similarities of all texts instead");
  values.weights.add_to(flags);
  flags.add_compute(values.compute);
  flags.example(
      "tzoo embed --model MiniLM --text \"The cat sits outside\" --text \"A dog barks\" --similarity");
  return flags.parse(arguments);
}

// Pooling settings from Sentence-Transformers files, overridden by the flags.
struct Pooling {
  bool mean = true, normalize = true;
  std::size_t max_length = 0;
};

Pooling pooling_of(const EmbedFlags& flags, const TextModel& model) {
  Pooling pooling{.max_length = model.max_length()};
  if (const fs::path file = flags.model / "1_Pooling" / "config.json"; fs::exists(file)) {
    const nlohmann::json json = read_json(file);
    const bool cls = json.value("pooling_mode_cls_token", false);
    pooling.mean = json.value("pooling_mode_mean_tokens", false);
    if (!flags.pooling && cls == pooling.mean) {
      throw Error(file, ": its pooling is neither mean nor cls; give --pooling");
    }
  }
  if (const fs::path file = flags.model / "modules.json"; fs::exists(file)) {
    pooling.normalize = read_file(file).find(".Normalize\"") != std::string::npos;
  }
  if (const fs::path file = flags.model / "sentence_bert_config.json"; fs::exists(file)) {
    const nlohmann::json json = read_json(file);
    if (json.contains("max_seq_length") && json["max_seq_length"].is_number_unsigned()) {
      pooling.max_length = std::min(pooling.max_length, json["max_seq_length"].get<std::size_t>());
    }
  }
  if (flags.pooling) pooling.mean = *flags.pooling == "mean";
  if (flags.normalize) pooling.normalize = *flags.normalize;
  if (flags.max_length)
    pooling.max_length = std::min(pooling.max_length, static_cast<std::size_t>(*flags.max_length));
  return pooling;
}

// [B, C]
at::Tensor embed_batch(const TextModel& model, const Pooling& pooling,
                       std::span<const Encoding* const> batch) {
  const ModelInputs inputs = batch_of(model, batch);
  const at::Tensor states = model.model->forward(inputs).last_hidden_state.to(at::kFloat);
  at::Tensor vectors;
  if (!pooling.mean) {
    vectors = states.select(1, 0);
  } else if (!inputs.attention_mask.defined()) {
    vectors = states.mean(1);
  } else {
    const at::Tensor kept = inputs.attention_mask.to(at::kFloat).unsqueeze(-1);  // [B, T, 1]
    vectors = (states * kept).sum(1) / kept.sum(1);
  }
  if (pooling.normalize) vectors = vectors / vectors.norm(2, -1, /*keepdim=*/true).clamp_min(1e-12);
  return vectors.cpu();
}

// One vector per text, in the given order.
std::vector<at::Tensor> embed(const TextModel& model, const Pooling& pooling,
                              const std::vector<std::string>& texts, std::size_t batch_size) {
  std::vector<Encoding> encodings;
  const EncodeOptions options{.max_length = pooling.max_length, .with_offsets = false};
  for (const std::string& text : texts) encodings.push_back(model.tokenizer->encode(text, options));
  const std::vector<std::size_t> order = by_length(encodings);
  std::vector<at::Tensor> vectors(texts.size());
  for (std::size_t begin = 0; begin < order.size(); begin += batch_size) {
    std::vector<const Encoding*> batch;
    for (std::size_t i = begin; i < std::min(begin + batch_size, order.size()); ++i) {
      batch.push_back(&encodings[order[i]]);
    }
    const at::Tensor rows = embed_batch(model, pooling, batch);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      vectors[order[begin + i]] = rows[static_cast<std::int64_t>(i)];
    }
  }
  return vectors;
}

void print_vector(const std::string& text, const at::Tensor& vector) {
  const at::Tensor row = vector.contiguous();
  const float* data = row.const_data_ptr<float>();
  nlohmann::ordered_json json;
  json["text"] = text;
  json["embedding"] = std::vector<float>(data, data + row.numel());
  std::cout << json_text(json) << "\n";
}

void print_similarity(const std::vector<std::string>& texts, const std::vector<at::Tensor>& vectors) {
  const at::Tensor all = at::stack(vectors);
  const at::Tensor unit = all / all.norm(2, -1, /*keepdim=*/true).clamp_min(1e-12);
  const at::Tensor cosines = at::matmul(unit, unit.t());
  std::vector<Table::Column> columns{number(""), {"text"}};
  for (std::size_t i = 0; i < texts.size(); ++i) columns.push_back(number(std::to_string(i + 1)));
  Table table(columns);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::vector<std::string> cells{std::to_string(i + 1), texts[i]};
    for (std::size_t j = 0; j < texts.size(); ++j) {
      std::array<char, 16> cell{};
      std::snprintf(cell.data(), cell.size(), "%.4f",
                    cosines[static_cast<std::int64_t>(i)][static_cast<std::int64_t>(j)].item<double>());
      cells.emplace_back(cell.data());
    }
    table.row(cells);
  }
  table.print(std::cout);
}

}  // namespace

int run_embed(const Arguments& arguments) {
  EmbedFlags flags;
  if (!read_flags(arguments, flags)) return 0;
  const at::NoGradGuard no_grad;
  const TextModel model = load_text_model(flags.model, flags.compute, flags.weights, Head::kBase);
  if (model.model->config().shape != Shape::kEncoder) {
    throw Error("--model: ", flags.model, " is not an encoder; only an encoder turns a text into a vector");
  }
  const Pooling pooling = pooling_of(flags, model);
  TextInput input(flags.text);
  Progress progress(0, "texts");
  std::vector<std::string> all_texts;
  std::vector<at::Tensor> all_vectors;
  std::int64_t done = 0;
  for (auto texts = input.next(kEmbeddedAtOnce); !texts.empty(); texts = input.next(kEmbeddedAtOnce)) {
    const auto vectors = embed(model, pooling, texts, static_cast<std::size_t>(flags.batch_size));
    if (flags.similarity) {
      all_texts.insert(all_texts.end(), texts.begin(), texts.end());
      all_vectors.insert(all_vectors.end(), vectors.begin(), vectors.end());
    } else {
      for (std::size_t i = 0; i < texts.size(); ++i) print_vector(texts[i], vectors[i]);
    }
    progress.update(done += static_cast<std::int64_t>(texts.size()));
  }
  progress.clear();
  if (flags.similarity && !all_texts.empty()) print_similarity(all_texts, all_vectors);
  return 0;
}

}  // namespace zoo
