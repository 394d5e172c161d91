#include <algorithm>
#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/answers/answers.h"
#include "apps/command/output.h"
#include "apps/command/terminal.h"
#include "apps/plots/attention_maps.h"
#include "apps/verbs/look/look_flags.h"
#include "apps/verbs/verbs.h"
#include "data/base/json.h"
#include "models/analysis/attribution.h"
#include "models/analysis/logit_lens.h"
#include "models/tasks/look_texts.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

struct AttributionTable {
  NamedLogit answer;
  analysis::LogitAttribution shares;
  bool is_capped = false;
};

void print(const AttributionTable& table) {
  const analysis::LogitAttribution& shares = table.shares;
  const std::string capped =
      table.is_capped ? " " + decimal(shares.capped, 3) + " after the softcap, before it " : " ";
  std::cout << "\n"
            << paragraph("logit of " + token_label(table.answer.name) + ":" + capped +
                         decimal(shares.logit, 3) + ", of which the embeddings give " +
                         decimal(shares.embeddings, 3) + ", the last biases " + decimal(shares.biases, 3) +
                         ", and the layers:");
  std::vector<Table::Column> columns{number("layer")};
  std::vector<at::Tensor> parts;  // [L] of each column
  const auto add = [&](const std::string& name, const at::Tensor& part) {
    if (!part.defined()) return;  // without cross-attention
    columns.push_back(number(name));
    parts.push_back(part);
  };
  add("attention", shares.attention);
  add("cross-attention", shares.cross_attention);
  add("feed-forward", shares.feed_forward);
  for (const auto& [name, heads] : {std::pair("head ", shares.heads), {"cross-head ", shares.cross_heads}})
    for (std::int64_t head = 0; heads.defined() && head < heads.size(1); ++head)
      add(name + std::to_string(head), heads.select(1, head));
  Table rows(columns);
  for (std::int64_t layer = 0; layer < shares.attention.size(0); ++layer) {
    std::vector<std::string> cells{std::to_string(layer)};
    for (const at::Tensor& part : parts) cells.push_back(signed_decimal(part[layer], 3));
    rows.row(cells);
  }
  rows.print(std::cout);
}

Json json_of(const AttributionTable& table) {
  const analysis::LogitAttribution& shares = table.shares;
  Json json{{"token", table.answer.name}, {"id", table.answer.id}, {"logit", shares.logit}};
  if (table.is_capped) json["capped_logit"] = shares.capped;
  json.update({{"embeddings", shares.embeddings},
               {"biases", shares.biases},
               {"attention", json_numbers(shares.attention)}});
  if (shares.cross_attention.defined()) json["cross_attention"] = json_numbers(shares.cross_attention);
  json["feed_forward"] = json_numbers(shares.feed_forward);
  json["heads"] = json_numbers(shares.heads);
  if (shares.cross_heads.defined()) json["cross_heads"] = json_numbers(shares.cross_heads);
  return json;
}

struct LensFlags : LookFlags {
  std::int64_t top_k = 5;
  std::optional<std::string> token;
  bool attribution = false;
};

struct Lens {
  const TextModel& model;
  std::vector<std::string> tokens;
  std::int64_t position;
  std::optional<NamedLogit> token;
  analysis::LogitLens numbers;  // on the CPU
  at::Tensor norms;             // [L + 1, T]
  std::optional<AttributionTable> attribution;

  std::int64_t rows() const { return numbers.ids.size(0); }
  std::string answer(std::int64_t row, std::int64_t at, std::int64_t k) const {
    return answer_numbered(model, numbers.ids[row][at][k].item<std::int64_t>()).name;
  }
};

std::string row_name(std::int64_t row) { return row == 0 ? "input" : std::to_string(row - 1); }

Lens look(const LensFlags& flags, const LookedModel& loaded) {
  const TextModel& model = loaded.model;
  const TextInputs read = read_texts(model, flags.texts, loaded.defaults);
  const analysis::Run run = analysis::run(*model.model, read.inputs);
  const std::int64_t position = answer_position(model, read, flags.position, /*needs_mask=*/false);
  analysis::LensOptions options{.top_k = flags.top_k};
  std::optional<NamedLogit> token;
  if (flags.token) {
    const at::Tensor logits = analysis::lens_logits(*model.model, run.stream.back());
    token = answer_named(model, "token", flags.token, logits[0][position].to(at::kFloat));
    options.token = token->id;
  }
  Lens lens{.model = model,
            .tokens = read.written.empty() ? read.source : read.written,
            .position = position,
            .token = token,
            .numbers = logit_lens(*model.model, run, options),
            .norms = stream_norms(run).select(1, 0).cpu()};
  analysis::LogitLens& numbers = lens.numbers;
  for (at::Tensor* each : {&numbers.ids, &numbers.probabilities, &numbers.entropies, &numbers.divergences,
                           &numbers.token_probabilities, &numbers.token_ranks}) {
    if (each->defined()) *each = each->cpu();
  }
  if (flags.attribution) {
    const auto best = lens.numbers.ids[-1][position][0].item<std::int64_t>();
    const NamedLogit answer = token ? *token : answer_numbered(model, best);
    lens.attribution = AttributionTable{
        .answer = answer,
        .shares = attribute_logit(*model.model, run, {.token = answer.id, .position = position}),
        .is_capped = model.model->parts().head.softcap > 0};
  }
  return lens;
}

Figure figure_of(const Lens& lens) {
  HeatMap map{.axes = {.title = "logit lens: the best answer after each layer",
                       .x = "token that is read",
                       .y = "layer"},
              .columns = token_labels(lens.tokens),
              .low = 0,
              .high = 1};
  const auto length = static_cast<std::int64_t>(lens.tokens.size());
  int widest = 1;  // text in a cell
  for (std::int64_t row = 0; row < lens.rows(); ++row) {
    map.rows.push_back(row_name(row));
    auto& cells = map.cells.emplace_back();
    auto& texts = map.texts.emplace_back();
    for (std::int64_t at = 0; at < length; ++at) {
      cells.push_back(lens.numbers.probabilities[row][at][0].item<double>());
      texts.push_back(token_label(lens.answer(row, at, 0)));
      widest = std::max(widest, display_width(texts.back()));
    }
  }
  Figure figure = heat_map(map);
  figure.width = std::clamp(160 + (24 + 9 * widest) * static_cast<int>(length), 560, 8000);
  figure.height = std::clamp(180 + 30 * static_cast<int>(lens.rows()), 320, 6000);
  return figure;
}

void print_layers(const Lens& lens) {
  const auto at = static_cast<std::size_t>(lens.position);
  std::cout << "\n"
            << paragraph(
                   "position " + std::to_string(at) + ", " + token_label(lens.tokens[at]) +
                   ": entropy and divergence from the last layer in bits, length of the residual stream");
  std::vector<Table::Column> columns{number("layer"), number("entropy"), number("divergence"),
                                     number("length")};
  if (lens.token) {
    columns.push_back(number(token_label(lens.token->name)));
    columns.push_back(number("rank"));
  }
  columns.push_back({"answers"});
  Table table(columns);
  const analysis::LogitLens& numbers = lens.numbers;
  const std::int64_t position = lens.position;
  for (std::int64_t row = 0; row < lens.rows(); ++row) {
    std::vector<std::string> cells{row_name(row), decimal(numbers.entropies[row][position], 3),
                                   decimal(numbers.divergences[row][position], 3),
                                   decimal(lens.norms[row][position], 3)};
    if (lens.token) {
      cells.push_back(decimal(numbers.token_probabilities[row][position], 3));
      cells.push_back(std::to_string(numbers.token_ranks[row][position].item<std::int64_t>() + 1));
    }
    std::string answers;
    for (std::int64_t k = 0; k < numbers.ids.size(2); ++k)
      answers += (k > 0 ? "  " : "") + token_label(lens.answer(row, position, k)) + " " +
                 decimal(numbers.probabilities[row][position][k], 3);
    cells.push_back(answers);
    table.row(cells);
  }
  table.print(std::cout);
}

Json cell_of(const Lens& lens, std::int64_t row, std::int64_t at) {
  const analysis::LogitLens& numbers = lens.numbers;
  Json cell{{"entropy", numbers.entropies[row][at].item<double>()},
            {"divergence", numbers.divergences[row][at].item<double>()},
            {"length", lens.norms[row][at].item<double>()}};
  if (lens.token)
    cell["token"] = {{"probability", numbers.token_probabilities[row][at].item<double>()},
                     {"rank", numbers.token_ranks[row][at].item<std::int64_t>() + 1}};
  cell["answers"] = Json::array();
  for (std::int64_t k = 0; k < numbers.ids.size(2); ++k)
    cell["answers"].push_back({{"token", lens.answer(row, at, k)},
                               {"id", numbers.ids[row][at][k].item<std::int64_t>()},
                               {"probability", numbers.probabilities[row][at][k].item<double>()}});
  return cell;
}

Json json_of(const LensFlags& flags, const Lens& lens) {
  Json json{{"model", flags.model.string()},
            {"text", flags.texts.text},
            {"tokens", lens.tokens},
            {"position", lens.position}};
  if (lens.token) json["token"] = {{"token", lens.token->name}, {"id", lens.token->id}};
  if (lens.attribution) json["attribution"] = json_of(*lens.attribution);
  json["layers"] = Json::array();
  for (std::int64_t row = 0; row < lens.rows(); ++row) {
    Json cells = Json::array();
    for (std::size_t at = 0; at < lens.tokens.size(); ++at)
      cells.push_back(cell_of(lens, row, static_cast<std::int64_t>(at)));
    json["layers"].push_back({{"layer", row_name(row)}, {"positions", std::move(cells)}});
  }
  return json;
}

}  // namespace

int run_lens(const Arguments& arguments) {
  LensFlags values;
  Flags flags(arguments.command,
              "Logit lens: shows what a language model would answer after each layer, by its own head on the "
              "residual stream. Layers and positions count from 0; row 'input' is before the first layer.");
  values.add_input(flags);
  flags.group("What is shown");
  flags.add("top_k", values.top_k, "number of answers of each layer", at_least(1));
  values.add_position(flags);
  flags.add("token", values.token,
            "also show the probability and rank of this token, a word that the vocabulary has",
            {.placeholder = "WORD"});
  flags.add(
      "attribution", values.attribution,
      "also show what each sublayer and head adds to the logit of --token (default: the best answer) at "
      "the position");
  values.add_output(flags, "runs/lens", "lens.json and the pictures");
  flags.example("tzoo lens --model openai-community/gpt2 --text \"The capital of France is\" --token Paris");
  if (!values.parse(flags, arguments)) return 0;
  const at::NoGradGuard no_grad;
  const LookedModel loaded = load_looked_model(values);
  const Lens lens = look(values, loaded);
  const std::string json = json_text(json_of(values, lens)) + "\n";
  const Figure figure = figure_of(lens);
  if (values.json) {
    std::cout << json;
  } else {
    std::cout << lens.rows() - 1 << " layers, " << lens.tokens.size() << " tokens\n";
    show_figure(figure, {}, "terminal");
    print_layers(lens);
    if (lens.attribution) print(*lens.attribution);
  }
  values.write("lens", json, figure);
  return 0;
}

}  // namespace zoo
