#include <algorithm>
#include <limits>

#include <nlohmann/json.hpp>

#include "apps/serve/endpoints/look_parts.h"
#include "models/tasks/look_sites.h"

namespace zoo {
namespace {

constexpr std::size_t kMostSites = 4096;
constexpr std::int64_t kMostNumber = std::numeric_limits<std::int32_t>::max();

ModelTexts texts_of(RequestFields& fields, const TextModel& model) {
  const TransformerConfig& config = model.model->config();
  const std::optional<std::string> text = fields.text("text");
  if (!text) fields.refuse_missing("text");
  ModelTexts texts{.text = *text, .text_pair = fields.text("text_pair"), .target = fields.text("target")};
  // Without a target the decoder has read its start token alone.
  if (reads_target(model) && !texts.target) texts.target = "";
  const auto appended = fields.ids("append", config.vocab_size).value_or(std::vector<std::int64_t>());
  if (config.shape != Shape::kDecoder && !reads_target(model) && !appended.empty())
    RequestFields::refuse("append", "needs a decoder, which reads one token after another");
  texts.appended.assign(appended.begin(), appended.end());
  return texts;
}

std::vector<Site> off_sites(RequestFields& fields, const TransformerConfig& stack) {
  return named_sites({.layers = fields.texts("layers", kMostSites),
                      .sublayers = fields.texts("sublayers", kMostSites),
                      .heads = fields.texts("heads", kMostSites),
                      .cross_heads = fields.texts("cross_heads", kMostSites)},
                     stack);
}

std::optional<LookPatch> patch_of(RequestFields& fields, const TransformerConfig& stack) {
  const std::optional<std::string> text = fields.text("patch_text");
  const std::string part = fields.text("patch_part").value_or("residual");
  const auto layer = fields.integer("patch_layer", 0, stack.num_layers - 1);
  const auto head = fields.integer("patch_head", 0, stack.num_heads - 1);
  const auto positions = fields.ids("patch_positions", kMostNumber);
  if (!text) return std::nullopt;
  const std::vector<std::string>& names = site_kind_names();
  if (std::find(names.begin(), names.end(), part) == names.end())
    RequestFields::refuse("patch_part",
                          "must be residual, attention, cross_attention, feed_forward, head or "
                          "cross_head");
  const SiteKind kind = site_kind(part);
  if (!layer) RequestFields::refuse("patch_layer", "is missing: the layer whose state is taken");
  if (kind.heads != head.has_value())
    RequestFields::refuse("patch_head", kind.heads ? "is missing: the head whose output is taken"
                                                   : "needs patch_part head or cross_head");
  LookPatch patch{
      .text = *text,
      .site = {.stack = stack.shape, .layer = *layer, .part = kind.part, .head = head.value_or(-1)},
      .positions = positions.value_or(std::vector<std::int64_t>())};
  check_part("patch_part", part, kind.part, stack);
  std::sort(patch.positions.begin(), patch.positions.end());
  patch.positions.erase(std::unique(patch.positions.begin(), patch.positions.end()), patch.positions.end());
  return patch;
}

}  // namespace

LookRequest read_look(RequestFields& fields, const TextModel& model) {
  LookRequest request{.texts = texts_of(fields, model)};
  request.position = fields.integer("position", 0, kMostNumber);
  const TransformerConfig stack = stack_of(*model.model, fields.text("stack"));
  request.stack = stack.shape;
  request.layer = fields.integer("layer", 0, stack.num_layers - 1);
  request.head = fields.integer("head", 0, stack.num_heads - 1);
  request.query = fields.integer("query", 0, kMostNumber);
  request.crosses = fields.flag("cross").value_or(false);
  if (request.head && !request.layer) RequestFields::refuse("head", "needs a layer");
  if (request.crosses && !stack.cross_attention) RequestFields::refuse("cross", "needs a cross-attention");
  request.off = off_sites(fields, stack);
  request.with = ablation_named(fields.text("with").value_or("zero"), request.off);
  request.patch = patch_of(fields, stack);
  return request;
}

}  // namespace zoo
