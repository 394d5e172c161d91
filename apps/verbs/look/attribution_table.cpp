#include "apps/verbs/look/attribution_table.h"

#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/answers/number_text.h"
#include "apps/command/output.h"
#include "apps/command/terminal.h"
#include "apps/plots/attention_maps.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

void add_heads(std::vector<std::string>& cells, const at::Tensor& shares) {
  for (std::int64_t head = 0; head < shares.size(0); ++head) cells.push_back(signed_decimal(shares[head], 3));
}

void add_columns(std::vector<Table::Column>& columns, const std::string& name, std::int64_t heads) {
  for (std::int64_t head = 0; head < heads; ++head)
    columns.push_back(number(name + " " + std::to_string(head)));
}

}  // namespace

AttributionTable attribution_table(const TextModel& model, const analysis::Run& run, const NamedLogit& answer,
                                   std::int64_t position) {
  AttributionTable table{
      .answer = answer,
      .shares = attribute_logit(*model.model, run, {.token = answer.id, .position = position})};
  analysis::LogitAttribution& shares = table.shares;
  for (at::Tensor* each : {&shares.attention, &shares.cross_attention, &shares.feed_forward, &shares.heads,
                           &shares.cross_heads}) {
    if (each->defined()) *each = each->cpu();
  }
  return table;
}

void print(const AttributionTable& table) {
  const analysis::LogitAttribution& shares = table.shares;
  std::cout << "\n"
            << paragraph("logit of " + token_label(table.answer.name) + ": " + decimal(shares.logit, 3) +
                         ", of which the embeddings give " + decimal(shares.embeddings, 3) +
                         ", the last biases " + decimal(shares.biases, 3) + ", and the layers:")
            << "\n";
  const bool cross = shares.cross_attention.defined();
  std::vector<Table::Column> columns{number("layer"), number("attention")};
  if (cross) columns.push_back(number("cross-attention"));
  columns.push_back(number("feed-forward"));
  add_columns(columns, "head", shares.heads.size(1));
  if (cross) add_columns(columns, "cross-head", shares.cross_heads.size(1));
  Table rows(columns);
  for (std::int64_t layer = 0; layer < shares.attention.size(0); ++layer) {
    std::vector<std::string> cells{std::to_string(layer), signed_decimal(shares.attention[layer], 3)};
    if (cross) cells.push_back(signed_decimal(shares.cross_attention[layer], 3));
    cells.push_back(signed_decimal(shares.feed_forward[layer], 3));
    add_heads(cells, shares.heads[layer]);
    if (cross) add_heads(cells, shares.cross_heads[layer]);
    rows.row(cells);
  }
  rows.print(std::cout);
}

Json json_of(const AttributionTable& table) {
  const analysis::LogitAttribution& shares = table.shares;
  Json json{{"token", table.answer.name}, {"id", table.answer.id},
            {"logit", shares.logit},      {"embeddings", shares.embeddings},
            {"biases", shares.biases},    {"attention", json_numbers(shares.attention)}};
  if (shares.cross_attention.defined()) json["cross_attention"] = json_numbers(shares.cross_attention);
  json["feed_forward"] = json_numbers(shares.feed_forward);
  json["heads"] = json_numbers(shares.heads);
  if (shares.cross_heads.defined()) json["cross_heads"] = json_numbers(shares.cross_heads);
  return json;
}

}  // namespace zoo
