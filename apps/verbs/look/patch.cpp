#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/answers/answers.h"
#include "apps/command/output.h"
#include "apps/command/progress.h"
#include "apps/plots/attention_maps.h"
#include "apps/verbs/look/look_flags.h"
#include "apps/verbs/verbs.h"
#include "data/base/error.h"
#include "data/base/json.h"
#include "models/analysis/sweep.h"
#include "models/tasks/look_sites.h"
#include "models/tasks/look_texts.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

struct PatchFlags : LookFlags {
  std::string corrupted, what = "residual";
  std::optional<std::string> token, other, stack;
  std::vector<std::string> positions;
};

// Both texts as the model reads them, and what is measured.
struct Texts {
  TextInputs clean, corrupted;
  NamedLogit token;
  std::optional<NamedLogit> other;
  analysis::SweepOptions options;
};

// True if the patched stack reads the clean and the corrupted text, false if it is the decoder after them.
bool reads_texts(const Texts& texts) {
  return texts.options.stack == Shape::kEncoder || texts.clean.written.empty();
}

Texts read_texts_of(const PatchFlags& flags, const LookedModel& loaded) {
  const TextModel& model = loaded.model;
  Texts texts{.clean = read_texts(model, flags.texts, loaded.defaults)};
  ModelTexts corrupted = flags.texts;
  corrupted.text = flags.corrupted;
  if (reads_target(model) && !corrupted.target) corrupted.target = "";
  texts.corrupted = read_texts(model, corrupted, loaded.defaults, "corrupted");
  if (reads_target(model)) {
    // The decoder reads the clean answer in both runs: only the encoder's text differs.
    texts.corrupted.inputs.decoder_input_ids = texts.clean.inputs.decoder_input_ids;
    texts.corrupted.written = texts.clean.written;
  }
  if (const std::size_t clean = texts.clean.source.size(), other = texts.corrupted.source.size();
      clean != other)
    throw Error("--corrupted: ", other, " tokens, but --text has ", clean,
                "; a state is patched at its own position, so both need the same number");
  const bool encodes_first = model.model->config().shape == Shape::kEncoderDecoder && !flags.stack;
  const SiteKind kind = site_kind(flags.what);
  const bool cross = kind.part == LayerPart::kCrossAttention;
  const TransformerConfig stack =
      stack_of(*model.model, encodes_first ? (cross ? "decoder" : "encoder") : flags.stack);
  check_part("what", flags.what, kind.part, stack);
  texts.options = {.stack = stack.shape, .part = kind.part, .heads = kind.heads};
  const auto& tokens = reads_texts(texts) ? texts.clean.source : texts.clean.written;
  texts.options.positions = position_list(flags.positions, static_cast<std::int64_t>(tokens.size()));
  analysis::LogitTarget& target = texts.options.target;
  target.position = answer_position(model, texts.clean, flags.position);
  const at::Tensor logits =
      analysis::target_logits(*model.model, model.model->forward(texts.clean.inputs), target);
  texts.token = answer_named(model, "token", flags.token, logits);
  target.token = texts.token.id;
  if (!flags.other) return texts;
  texts.other = answer_named(model, "other", flags.other, logits);
  target.other = texts.other->id;
  return texts;
}

// Tokens of the stack's positions, "wrong→right" where the texts differ.
std::vector<std::string> tokens_of(const Texts& texts) {
  if (!reads_texts(texts)) return token_labels(texts.clean.written);
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < texts.clean.source.size(); ++i) {
    const std::string clean = token_label(texts.clean.source[i]);
    const std::string corrupted = token_label(texts.corrupted.source[i]);
    labels.push_back(clean == corrupted ? clean : corrupted + "→" + clean);
  }
  return labels;
}

std::vector<std::string> columns_of(const Texts& texts) {
  const std::vector<std::string> tokens = tokens_of(texts);
  if (texts.options.positions.empty()) return tokens;
  std::vector<std::string> chosen;
  for (const std::int64_t position : texts.options.positions)
    chosen.push_back(tokens[static_cast<std::size_t>(position)]);
  return chosen;
}

std::string significant(double value) { return format_text("%.6g", value); }

std::string measured(const Texts& texts) {
  const std::string token = token_label(texts.token.name);
  return texts.other ? "logit of " + token + " minus that of " + token_label(texts.other->name)
                     : "probability of " + token;
}

Figure figure_of(const PatchFlags& flags, const Texts& texts, const analysis::PatchEffects& effects) {
  const bool heads = texts.options.heads;
  const HeatMap map{.axes = {.title = flags.what + " patched: share of the clean answer",
                             .x = heads ? "head" : "position",
                             .y = "layer"},
                    .columns = heads ? std::vector<std::string>() : columns_of(texts)};
  // 0 as corrupted, 1 as clean; added to 0, a negative zero is 0.
  const at::Tensor shares = (effects.patched - effects.corrupted) / (effects.clean - effects.corrupted) + 0.0;
  return layers_figure(map, shares, 1.0);
}

Json json_of(const PatchFlags& flags, const Texts& texts, const analysis::PatchEffects& effects) {
  Json json{{"model", flags.model.string()},
            {"text", flags.texts.text},
            {"corrupted_text", flags.corrupted},
            {"what", flags.what},
            {"stack", texts.options.stack == Shape::kEncoder ? "encoder" : "decoder"},
            {"token", {{"token", texts.token.name}, {"id", texts.token.id}}}};
  if (texts.other) json["other"] = {{"token", texts.other->name}, {"id", texts.other->id}};
  json["measured"] = texts.other ? "logit difference" : "probability";
  json["position"] = texts.options.target.position;
  if (!texts.options.positions.empty()) json["positions"] = texts.options.positions;
  if (!texts.options.heads) json["columns"] = columns_of(texts);
  json["clean"] = effects.clean;
  json["corrupted"] = effects.corrupted;
  json["patched"] = json_numbers(effects.patched);
  return json;
}

}  // namespace

int run_patch(const Arguments& arguments) {
  PatchFlags values;
  Flags flags(arguments.command,
              "Activation patching: runs the corrupted text with one state taken from the clean text, for "
              "each layer and position, and shows how much of the clean answer comes back. Layers, heads and "
              "positions count from 0.");
  values.add_input(flags, "clean text, whose answer is looked for; for an encoder-decoder, its encoder's");
  flags.add("corrupted", values.corrupted,
            "text of as many tokens that changes the answer, such as another name", {.required = true});
  flags.group("What is measured");
  flags.add("token", values.token,
            "answer whose probability is measured, one token; default: the clean text's most probable",
            {.placeholder = "WORD"});
  flags.add("other", values.other,
            "wrong answer: measure the difference of both logits in place of the probability",
            {.placeholder = "WORD"});
  values.add_position(flags);
  flags.group("What is patched");
  flags.choice(
      "what", values.what, site_kind_names(),
      "residual: the residual stream after a layer; attention, cross_attention, feed_forward: what a "
      "sublayer adds to it; head, cross_head: each head, at all positions");
  flags.choice("stack", values.stack, {"encoder", "decoder"},
               "stack of an encoder-decoder; default: the encoder, which reads the texts");
  flags.add("positions", values.positions,
            "positions that are patched, such as 2,5: each by itself, of heads together; default: all",
            {.placeholder = "N,…"});
  values.add_output(flags, "runs/patch", "patch.json and the pictures");
  flags.example(
      "tzoo patch --model openai-community/gpt2 --text \"The capital of France is\" --corrupted \"The "
      "capital of Italy is\" --token Paris");
  if (!values.parse(flags, arguments)) return 0;
  const at::NoGradGuard no_grad;
  const LookedModel loaded = load_looked_model(values);
  Texts texts = read_texts_of(values, loaded);
  texts.options.progress = progress_bar("patches");
  const analysis::PatchEffects effects =
      patch_sweep(*loaded.model.model, texts.clean.inputs, texts.corrupted.inputs, texts.options);
  texts.options.progress = nullptr;
  const std::string json = json_text(json_of(values, texts, effects)) + "\n";
  if (values.json) std::cout << json;
  if (effects.clean == effects.corrupted)
    throw Error("--corrupted: the ", measured(texts), " is ", significant(effects.clean), " with both texts");
  const Figure figure = figure_of(values, texts, effects);
  if (!values.json) {
    std::cout << paragraph(measured(texts) + ": " + significant(effects.clean) + " with the clean text, " +
                           significant(effects.corrupted) + " with the corrupted one");
    show_figure(figure, {}, "terminal");
  }
  values.write("patch", json, figure);
  return 0;
}

}  // namespace zoo
