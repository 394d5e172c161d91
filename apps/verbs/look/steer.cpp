#include <algorithm>
#include <iostream>
#include <iterator>

#include <ATen/ops/softmax.h>
#include <nlohmann/json.hpp>

#include "apps/answers/answers.h"
#include "apps/command/output.h"
#include "apps/command/visible_text.h"
#include "apps/compute/compute.h"
#include "apps/hub/hub_cache.h"
#include "apps/plots/attention_maps.h"
#include "apps/training/batches/encode_examples.h"
#include "apps/verbs/measure/evaluations.h"
#include "apps/verbs/verbs.h"
#include "data/base/json.h"
#include "data/base/lines.h"
#include "data/corpora/text_file.h"
#include "models/analysis/steering.h"
#include "models/generation/generate.h"
#include "models/generation/module_decoder.h"
#include "models/tasks/look_texts.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

struct SteerFlags {
  ModelPath model;
  std::string toward, away, prompt;
  std::optional<std::int64_t> layer;
  double strength = 1, temperature = 0;
  std::int64_t max_new_tokens = 50, top_k = 5;
  bool json = false;
  ComputeOptions compute{.device = "cpu"};
};

// A text of each line that has one.
std::vector<ModelInputs> texts_in(const LookedModel& loaded, const std::string& file) {
  std::vector<ModelInputs> texts;
  const std::string content = read_text(file);
  for (const Line& line : lines_of(content)) {
    if (line.text.empty()) continue;
    texts.push_back(at_line(file, line.number, [&] {
      return read_texts(loaded.model, {.text = std::string(line.text)}, loaded.defaults).inputs;
    }));
  }
  if (texts.empty()) throw Error(file, ": expected a text in each line, got none");
  return texts;
}

struct Steered {
  std::string text;          // what the model writes
  at::Tensor probabilities;  // [V] of the first token
};

// What the ids add to the prompt's text; a vocabulary may be padded with ids that are no tokens.
std::string text_after(const Tokenizer& tokenizer, TokenIds prompt, const TokenIds& ids) {
  const std::string before = tokenizer.decode(prompt);
  std::ranges::copy_if(ids, std::back_inserter(prompt),
                       [&](TokenId id) { return id < tokenizer.id_count(); });
  const std::string whole = tokenizer.decode(prompt);
  return whole.starts_with(before) ? whole.substr(before.size()) : whole;
}

Steered continued(const SteerFlags& flags, const LookedModel& loaded,
                  std::vector<Intervention> interventions) {
  const TextModel& model = loaded.model;
  ModelInputs inputs = read_texts(model, {.text = flags.prompt}, loaded.defaults, "prompt").inputs;
  const TokenIds prompt = rows_of(inputs.input_ids.cpu())[0];
  inputs.interventions = interventions;
  const at::Tensor logits = model.model->forward(inputs).logits[0][-1];
  ModuleDecoder decoder(*model.model, std::move(interventions));
  const GenerationResult written = generate(
      decoder, {prompt},
      {.max_new_tokens = flags.max_new_tokens,
       .sampling = {.temperature = flags.temperature, .seed = static_cast<std::uint64_t>(flags.compute.seed)},
       .eos_token_ids = defaults_of(loaded.defaults).eos_token_ids});
  return {text_after(*model.tokenizer, prompt, written.ids[0]), at::softmax(logits.to(at::kFloat), -1).cpu()};
}

}  // namespace

int run_steer(const Arguments& arguments) {
  SteerFlags values;
  Flags flags(
      arguments.command,
      "Steers a language model: finds the direction that leads from one set of texts to another in the "
      "residual stream, adds it while the model writes, and shows what changes.");
  flags.group("Input");
  add_model_flag(flags, values.model);
  flags.add("toward", values.toward, "file with a text a line, of the kind that is wanted",
            {.placeholder = "FILE", .required = true});
  flags.add("away", values.away, "file with a text a line, of the opposite kind",
            {.placeholder = "FILE", .required = true});
  flags.add("prompt", values.prompt, "text that the model continues", {.required = true});
  flags.group("Steering");
  flags.add("layer", values.layer, "layer after which the direction is found and added; default: half way",
            at_least(0));
  flags.add("strength", values.strength, "factor of the direction; below 0 it leads away",
            FieldRange{.least = -1e6, .most = 1e6});
  flags.add("max_new_tokens", values.max_new_tokens, "most tokens to write", at_least(1));
  flags.add("temperature", values.temperature, "of the tokens that are drawn; 0: the most probable one",
            between(0, 1e6));
  flags.add("top_k", values.top_k, "first tokens that are shown", at_least(1));
  flags.group("Output");
  flags.add("json", values.json, "print the numbers and the direction as JSON");
  flags.add_compute(values.compute);
  flags.example("tzoo steer --model runs/kjv/final --toward joy.txt --away grief.txt --prompt \"And he\"");
  if (!flags.parse(arguments)) return 0;
  const at::NoGradGuard no_grad;
  apply_threads(values.compute);
  const LookedModel loaded = load_looked_model(values.model, values.compute);
  Model& model = *loaded.model.model;
  if (loaded.model.head != Head::kCausalLm)
    throw Error("--model: ", values.model, " has a ", name_of(loaded.model.head),
                " head; expected causal-lm");
  const std::int64_t layers = model.config().num_layers, layer = values.layer.value_or(layers / 2);
  if (layer >= layers) throw UsageError("--layer ", layer, ": expected a layer from 0 to ", layers - 1);
  const at::Tensor direction = analysis::steering_direction(model, texts_in(loaded, values.toward),
                                                            texts_in(loaded, values.away), layer);
  const Steered without = continued(values, loaded, {}),
                with =
                    continued(values, loaded, {analysis::steering(model, direction, layer, values.strength)});
  const auto best = std::get<1>(with.probabilities.topk(std::min(values.top_k, with.probabilities.size(0))));
  Json first_tokens = Json::array();
  Table table({{"first token"}, number("without"), number("with")});
  for (std::int64_t i = 0; i < best.size(0); ++i) {
    const auto id = best[i].item<std::int64_t>();
    const std::string name = answer_numbered(loaded.model, id).name;
    const auto before = without.probabilities[id].item<double>(), now = with.probabilities[id].item<double>();
    first_tokens.push_back({{"token", name}, {"id", id}, {"without", before}, {"with", now}});
    table.row({token_label(name), decimal(before, 4), decimal(now, 4)});
  }
  if (values.json) {
    const Json json{{"layer", layer},
                    {"strength", values.strength},
                    {"length", direction.norm().item<double>()},
                    {"without", without.text},
                    {"with", with.text},
                    {"first_tokens", first_tokens},
                    {"direction", json_numbers(direction.cpu())}};
    std::cout << json_text(json) << "\n";
    return 0;
  }
  std::cout << "without:\n"
            << written_text(values.prompt + without.text) << "\n\nwith:\n"
            << written_text(values.prompt + with.text) << "\n\n";
  table.print(std::cout);
  return 0;
}

}  // namespace zoo
