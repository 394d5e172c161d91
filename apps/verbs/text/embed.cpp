#include <iostream>

#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <nlohmann/json.hpp>

#include "apps/answers/answers.h"
#include "apps/command/flags.h"
#include "apps/command/output.h"
#include "apps/command/progress.h"
#include "apps/hub/hub_cache.h"
#include "apps/verbs/text/text_input.h"
#include "apps/verbs/verbs.h"
#include "data/base/json.h"
#include "models/tasks/text_embedder.h"
#include "models/tasks/text_model.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

// Texts per read; each read is batched by similar length.
constexpr std::size_t kEmbeddedAtOnce = 4096;

// Cosines of vectors [N, C].
void print_similarity(const std::vector<std::string>& texts, const at::Tensor& vectors, bool as_json) {
  const at::Tensor unit = unit_vectors(vectors), cosines = at::matmul(unit, unit.t());
  if (as_json) {
    std::cout << json_text(ordered_json{{"texts", texts}, {"similarity", json_numbers(cosines)}}) << "\n";
    return;
  }
  std::vector<Table::Column> columns{number(""), {"text"}};
  for (std::size_t i = 0; i < texts.size(); ++i) columns.push_back(number(std::to_string(i + 1)));
  Table table(columns);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::vector<std::string> cells{std::to_string(i + 1), texts[i]};
    for (std::size_t j = 0; j < texts.size(); ++j)
      cells.push_back(format_text(
          "%.4f", cosines[static_cast<std::int64_t>(i)][static_cast<std::int64_t>(j)].item<double>()));
    table.row(cells);
  }
  table.print(std::cout);
}

}  // namespace

int run_embed(const Arguments& arguments) {
  ModelPath model;
  TextFlags text;
  std::vector<std::string> pooling;
  std::optional<std::string> prompt, prompt_name;
  std::optional<bool> normalize;
  std::optional<std::int64_t> max_length;
  std::int64_t batch_size = 32;
  bool similarity = false, json = false;
  ComputeOptions compute;
  Flags flags(
      arguments.command,
      "Turns texts into vectors with an encoder or a Sentence-Transformers directory. Prints one object "
      "{\"text\", \"embedding\"} per line.");
  flags.group("Input");
  add_model_flag(flags, model);
  add_text_flags(flags, text);
  flags.add("max_length", max_length, "most tokens of a text to read; default: the model's limit",
            at_least(3));
  flags.group("Embedding");
  flags.add("prompt", prompt, "put before each text; default: the model's default_prompt_name, else nothing");
  flags.add("prompt_name", prompt_name, "the model's prompt of this name, instead of --prompt",
            {.placeholder = "NAME"});
  flags.choice(
      "pooling", pooling, pooling_names(),
      "vector of a text from its tokens; may be repeated, to concatenate several; default: what the model's "
      "modules.json says, else mean");
  flags.add("normalize", normalize,
            "scale each vector to length 1; default: what the model's modules.json says, else true");
  flags.add("batch_size", batch_size, "texts per batch", between(1, kMostBatchRows));
  flags.group("Output");
  flags.add("similarity", similarity, "print a table of the cosine similarities of all texts instead");
  flags.add("json", json, "print --similarity as one JSON object; vectors always are JSON");
  flags.example(
      "tzoo embed --model MiniLM --text \"The cat sits outside\" --text \"A dog barks\" --similarity");
  if (!parse_with_compute(flags, compute, arguments)) return 0;
  const SentenceConfig config = SentenceConfig::read(model);
  TextModel loaded = load_text_model(read_checkpoint_config(config.transformer), compute, Head::kBase);
  EmbedOptions options{.modules = {.normalize = normalize, .device = loaded.device}, .prompt = prompt};
  for (const std::string& name : pooling) options.modules.pooling.push_back(*pooling_named(name));
  if (prompt_name) options.prompt = config.prompt_named(*prompt_name);
  if (max_length) options.max_length = static_cast<std::size_t>(*max_length);
  const std::string before = options.prompt.value_or(config.default_prompt);
  const bool reads_empty = !loaded.tokenizer->encode(before, EncodeOptions{}).ids.empty();
  const TextEmbedder embedder(std::move(loaded.model), std::move(loaded.tokenizer), config, options);
  TextInput input(text, {{"text"}}, reads_empty);
  Progress progress(0, "texts");
  CutTexts cut;
  std::vector<std::string> all_texts;
  std::vector<at::Tensor> all_vectors;
  std::int64_t done = 0;
  for (auto texts = input.next(kEmbeddedAtOnce); !texts.empty(); texts = input.next(kEmbeddedAtOnce)) {
    const at::Tensor vectors = embedder.embed(texts, static_cast<std::size_t>(batch_size), cut.run());
    if (similarity) {
      all_texts.insert(all_texts.end(), texts.begin(), texts.end());
      all_vectors.push_back(vectors);
    } else {
      for (std::size_t i = 0; i < texts.size(); ++i)
        std::cout << json_text(
                         ordered_json{{"text", texts[i]},
                                      {"embedding", json_numbers(vectors[static_cast<std::int64_t>(i)])}})
                  << "\n";
    }
    progress.update(done += static_cast<std::int64_t>(texts.size()));
  }
  progress.clear();
  cut.note();
  if (!all_texts.empty()) print_similarity(all_texts, at::cat(all_vectors), json);
  return 0;
}

}  // namespace zoo
