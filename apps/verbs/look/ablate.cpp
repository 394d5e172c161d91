#include <algorithm>
#include <iostream>

#include <ATen/ops/log_softmax.h>
#include <nlohmann/json.hpp>

#include "apps/answers/answers.h"
#include "apps/command/output.h"
#include "apps/command/progress.h"
#include "apps/plots/attention_maps.h"
#include "apps/verbs/look/look_flags.h"
#include "apps/verbs/verbs.h"
#include "data/base/json.h"
#include "models/analysis/logit_lens.h"
#include "models/analysis/sweep.h"
#include "models/tasks/look_sites.h"
#include "models/tasks/look_texts.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

struct AblateFlags : LookFlags {
  SiteNames off;
  std::string each = "head", with = "zero";
  std::optional<std::string> token, stack;
  std::int64_t top_k = 10;

  bool names_sites() const {
    return !off.layers.empty() || !off.sublayers.empty() || !off.heads.empty() || !off.cross_heads.empty();
  }
};

// Log-probabilities [V] of the answers with everything on, and with the sites off.
struct Answers {
  at::Tensor on, off;
  std::optional<std::int64_t> chosen;

  double divergence() const { return analysis::divergence(on, off).item<double>(); }
  /// The most probable of both, each once, those with everything on first; after `chosen`.
  std::vector<std::int64_t> best(std::int64_t top_k) const {
    std::vector<std::int64_t> ids;
    if (chosen) ids.push_back(*chosen);
    for (const at::Tensor& of : {on, off}) {
      const at::Tensor top = std::get<1>(of.topk(std::min(top_k, of.size(0))));
      for (std::int64_t k = 0; k < top.size(0); ++k) {
        const auto id = top[k].item<std::int64_t>();
        if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
      }
    }
    return ids;
  }
};

// As JSON; also printed, unless the flags ask for JSON.
Json shown(const AblateFlags& flags, const TextModel& model, const Answers& answers) {
  Json json{{"divergence", answers.divergence()}, {"answers", Json::array()}};
  Table table({{"answer"}, number("on"), number("off"), number("change")});
  for (const std::int64_t id : answers.best(flags.top_k)) {
    const std::string name = answer_numbered(model, id).name;
    const auto on = answers.on[id].exp().item<double>(), off = answers.off[id].exp().item<double>();
    json["answers"].push_back({{"token", name}, {"id", id}, {"on", on}, {"off", off}});
    table.row({token_label(name), decimal(on, 4), decimal(off, 4), decimal(off - on, 4)});
  }
  if (flags.json) return json;
  std::cout << paragraph("probabilities with everything on and with the ablations; divergence " +
                         decimal(answers.divergence(), 4) + " bits");
  table.print(std::cout);
  return json;
}

// The flags' sites all off together.
Json compare(const AblateFlags& flags, const LookedModel& loaded, const TextInputs& read,
             const analysis::LogitTarget& target, const TransformerConfig& stack) {
  Model& model = *loaded.model.model;
  ModelInputs off = read.inputs;
  const std::vector<Site> sites = named_sites(flags.off, stack);
  off.interventions = ablated(model, read.inputs, sites, ablation_named(flags.with, sites));
  const auto answer = [&](const ModelInputs& inputs) {
    return at::log_softmax(target_logits(model, analysis::run(model, inputs).output, target), -1).cpu();
  };
  Answers answers{.on = answer(read.inputs), .off = answer(off)};
  if (flags.token) answers.chosen = answer_named(loaded.model, "token", *flags.token, answers.on).id;
  return shown(flags, loaded.model, answers);
}

Figure figure_of(const AblateFlags& flags, const NamedLogit& token,
                 const analysis::AblationEffects& effects) {
  const at::Tensor changes = effects.ablated - effects.whole;
  const HeatMap map{.axes = {.title = "change of P(" + token_label(token.name) + ") without a " + flags.each,
                             .x = changes.size(1) > 1 ? "head" : flags.each,
                             .y = "layer"}};
  return layers_figure(map, changes, 1e-6);
}

// Each site off by itself.
Json sweep_each(const AblateFlags& flags, const LookedModel& loaded, const TextInputs& read,
                analysis::LogitTarget target, const TransformerConfig& stack, std::optional<Figure>& figure) {
  Model& model = *loaded.model.model;
  const SiteKind kind = site_kind(flags.each);
  check_part("each", flags.each, kind.part, stack);
  const analysis::Ablation ablation = ablation_named(flags.with, {Site{.part = kind.part}});
  const at::Tensor logits = target_logits(model, model.forward(read.inputs), target);
  const NamedLogit token = answer_named(loaded.model, "token", flags.token, logits);
  target.token = token.id;
  const analysis::AblationEffects effects = ablation_sweep(model, read.inputs,
                                                           {.stack = stack.shape,
                                                            .part = kind.part,
                                                            .heads = kind.heads,
                                                            .target = target,
                                                            .progress = progress_bar("ablations")},
                                                           ablation);
  figure = figure_of(flags, token, effects);
  if (!flags.json) {
    std::cout << "probability of " << token_label(token.name) << ": " << decimal(effects.whole, 4)
              << " with everything on\n";
    show_figure(*figure, {}, "terminal");
  }
  Json json{
      {"each", flags.each}, {"token", {{"token", token.name}, {"id", token.id}}}, {"on", effects.whole}};
  json["off"] = json_numbers(effects.ablated);
  return json;
}

}  // namespace

int run_ablate(const Arguments& arguments) {
  AblateFlags values;
  Flags flags(arguments.command,
              "Ablation: switches heads, sublayers or layers of a model off and shows its answer with and "
              "without them. Layers, heads and positions count from 0.");
  values.add_input(flags);
  flags.group("What is switched off");
  flags.add("heads", values.off.heads, "heads of self-attention, such as 3.5,4.0: layer and head",
            {.placeholder = "LAYER.HEAD,…"});
  flags.add("cross_heads", values.off.cross_heads, "the same of cross-attention",
            {.placeholder = "LAYER.HEAD,…"});
  flags.add("sublayers", values.off.sublayers,
            "sublayers, such as 2.attention,3.feed_forward,3.cross_attention",
            {.placeholder = "LAYER.NAME,…"});
  flags.add("layers", values.off.layers, "whole layers, such as 4,5", {.placeholder = "LAYER,…"});
  flags.choice(
      "each", values.each, {"head", "cross_head", "attention", "cross_attention", "feed_forward", "layer"},
      "where none of these is given: switch each of these off by itself, and show what it does to one "
      "answer");
  flags.choice("with", values.with, {"zero", "mean"},
               "what stands for an output that is off: zeros, or its mean over the text's positions");
  flags.choice("stack", values.stack, {"encoder", "decoder"},
               "stack of an encoder-decoder; default: the decoder");
  flags.group("What is shown");
  flags.add("top_k", values.top_k, "number of answers", at_least(1));
  flags.add("token", values.token,
            "answer that is shown first, or that --each shows, one token; default: the most probable",
            {.placeholder = "WORD"});
  values.add_position(flags);
  values.add_output(flags, "runs/ablate", "ablate.json and the pictures of --each");
  flags.example(
      "tzoo ablate --model openai-community/gpt2 --text \"When Mary and John went out, John gave a "
      "drink to\" --heads 9.9,10.0");
  if (!values.parse(flags, arguments)) return 0;
  if (values.names_sites() && flags.given("each"))
    throw UsageError("--each: cannot be combined with --heads, --cross_heads, --sublayers and --layers");
  if (!values.names_sites() && flags.given("top_k"))
    throw UsageError("--top_k: one answer is shown where neither --heads nor another flag names what is off");
  const at::NoGradGuard no_grad;
  const LookedModel loaded = load_looked_model(values);
  const TextInputs read = read_texts(loaded.model, values.texts, loaded.defaults);
  const TransformerConfig stack = stack_of(*loaded.model.model, values.stack);
  const analysis::LogitTarget target{.position = answer_position(loaded.model, read, values.position)};
  Json json{{"model", values.model.string()},
            {"text", values.texts.text},
            {"position", target.position},
            {"with", values.with}};
  std::optional<Figure> figure;
  json.update(values.names_sites() ? compare(values, loaded, read, target, stack)
                                   : sweep_each(values, loaded, read, target, stack, figure));
  if (values.json) std::cout << json_text(json) << "\n";
  values.write("ablate", json_text(json) + "\n", figure);
  return 0;
}

}  // namespace zoo
