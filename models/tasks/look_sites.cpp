#include "models/tasks/look_sites.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "data/base/field_error.h"
#include "data/base/lines.h"
#include "models/analysis/residual_stream.h"
#include "models/analysis/sweep.h"
#include "models/layers/stack.h"

namespace zoo {
namespace {

// The items of all texts, which commas separate.
std::vector<std::string> items_of(const std::string& field, const std::vector<std::string>& texts) {
  std::vector<std::string> items;
  for (const std::string& text : texts) {
    std::istringstream list(text + ",");  // an item before each comma, an empty one, too
    for (std::string item; std::getline(list, item, ',');) {
      if (item.empty()) throw UnfitField(Field{field}, " '", text, "': an item is empty");
      items.push_back(item);
    }
  }
  return items;
}

// A number below `count`, of what `name` says.
std::int64_t number_below(const std::string& field, const std::string& item, std::string_view digits,
                          std::int64_t count, const char* name) {
  const std::int64_t number = number_in<std::int64_t>(digits).value_or(-1);
  if (number >= 0 && number < count) return number;
  throw UnfitField(Field{field}, " ", item, ": expected a ", name, " from 0 to ", count - 1, ", got '",
                   digits, "'");
}

// Divides "3.rest" into its two parts.
std::pair<std::string, std::string> halves(const std::string& field, const std::string& item,
                                           const char* example) {
  const std::size_t point = item.find('.');
  if (point == std::string::npos) throw UnfitField(Field{field}, " ", item, ": expected ", example);
  return {item.substr(0, point), item.substr(point + 1)};
}

void add_heads(const std::string& field, const std::vector<std::string>& texts, LayerPart part,
               const TransformerConfig& stack, std::vector<Site>& sites) {
  for (const std::string& item : items_of(field, texts)) {
    check_part(field, item, part, stack);
    const auto [layer, head] = halves(field, item, "LAYER.HEAD, such as 3.5");
    sites.push_back({.stack = stack.shape,
                     .layer = number_below(field, item, layer, stack.num_layers, "layer"),
                     .part = part,
                     .head = number_below(field, item, head, stack.num_heads, "head")});
  }
}

}  // namespace

const std::vector<std::string>& site_kind_names() {
  static const std::vector<std::string> names{"residual",     "attention", "cross_attention",
                                              "feed_forward", "head",      "cross_head"};
  return names;
}

SiteKind site_kind(const std::string& name) {
  if (name == "attention") return {LayerPart::kAttention, false};
  if (name == "cross_attention") return {LayerPart::kCrossAttention, false};
  if (name == "feed_forward") return {LayerPart::kFeedForward, false};
  if (name == "head") return {LayerPart::kAttention, true};
  if (name == "cross_head") return {LayerPart::kCrossAttention, true};
  return {};  // "residual" and "layer"
}

void check_part(const std::string& field, const std::string& word, LayerPart part,
                const TransformerConfig& stack) {
  if (part == LayerPart::kCrossAttention && !stack.cross_attention)
    throw UnfitField(Field{field}, " ", word, ": only an encoder-decoder's decoder has cross-attention");
}

analysis::Ablation ablation_named(const std::string& name, const std::vector<Site>& sites) {
  if (name == "zero") return analysis::Ablation::kZero;
  if (name != "mean") throw UnfitField(Field{"with"}, " must be zero or mean");
  if (std::ranges::find(sites, LayerPart::kResidual, &Site::part) != sites.end())
    throw UnfitField(Field{"with"}, " mean: a layer that is off passes its input on, so it has no mean");
  return analysis::Ablation::kMean;
}

TransformerConfig stack_of(const Model& model, const std::optional<std::string>& name) {
  const ModelParts parts = model.parts();
  if (!name) return analysis::head_stack(model).config();
  if (*name != "encoder" && *name != "decoder")
    throw UnfitField(Field{"stack"}, " ", *name, ": expected encoder or decoder");
  const auto& stack = *name == "encoder" ? parts.encoder : parts.decoder;
  if (!stack) throw UnfitField(Field{"stack"}, " ", *name, ": the model has none");
  return stack->config();
}

std::vector<std::int64_t> position_list(const std::vector<std::string>& texts, std::int64_t length) {
  std::set<std::int64_t> positions;
  for (const std::string& item : items_of("positions", texts))
    positions.insert(number_below("positions", item, item, length, "position"));
  return {positions.begin(), positions.end()};
}

std::vector<Site> named_sites(const SiteNames& names, const TransformerConfig& stack) {
  std::vector<Site> sites;
  for (const std::string& item : items_of("layers", names.layers))
    sites.push_back(
        {.stack = stack.shape, .layer = number_below("layers", item, item, stack.num_layers, "layer")});
  for (const std::string& item : items_of("sublayers", names.sublayers)) {
    const auto [layer, name] = halves("sublayers", item, "LAYER.NAME, such as 3.attention");
    const SiteKind kind = site_kind(name);
    if (kind.heads || kind.part == LayerPart::kResidual)
      throw UnfitField(Field{"sublayers"}, " ", item,
                       ": expected attention, cross_attention or feed_forward, got '", name, "'");
    check_part("sublayers", item, kind.part, stack);
    sites.push_back({.stack = stack.shape,
                     .layer = number_below("sublayers", item, layer, stack.num_layers, "layer"),
                     .part = kind.part});
  }
  add_heads("heads", names.heads, LayerPart::kAttention, stack, sites);
  add_heads("cross_heads", names.cross_heads, LayerPart::kCrossAttention, stack, sites);
  return sites;
}

}  // namespace zoo
