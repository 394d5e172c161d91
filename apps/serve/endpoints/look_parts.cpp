#include "apps/serve/endpoints/look_parts.h"

#include <algorithm>
#include <limits>
#include <set>

#include <ATen/ops/_unique.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <nlohmann/json.hpp>

#include "apps/answers/answers.h"
#include "data/base/base64.h"
#include "models/analysis/logit_lens.h"
#include "models/tasks/answer.h"
#include "models/tasks/look_sites.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

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
  const auto given = fields.ids("patch_positions", kMostNumber).value_or(std::vector<std::int64_t>());
  const std::set<std::int64_t> positions(given.begin(), given.end());
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
  check_part("patch_part", part, kind.part, stack);
  return LookPatch{
      .text = *text,
      .site = {.stack = stack.shape, .layer = *layer, .part = kind.part, .head = head.value_or(-1)},
      .positions = {positions.begin(), positions.end()}};
}

constexpr std::int64_t kNamed = 200;

// Spans of the second text: the sum of the logits of first and last token, as answers are scored.
LookAnswer span_answer(const LookPlace& place, const ModelOutput& output) {
  const Encoding& encoding = place.read.encoding;
  require_offsets(encoding);
  const at::Tensor start = output.start_logits[0].to(at::kFloat).cpu(),
                   end = output.end_logits[0].to(at::kFloat).cpu();
  const auto longest = static_cast<std::size_t>(AnswerRules().max_answer_length);
  std::vector<ByteRange> ranges;
  std::vector<float> logits;
  for (std::size_t i = 0; i < encoding.size(); ++i) {
    for (std::size_t j = i; j < std::min(encoding.size(), i + longest); ++j) {
      if (encoding.texts[i] != 1 || encoding.texts[j] != 1) continue;
      ranges.push_back({encoding.offsets[i].begin, encoding.offsets[j].end});
      logits.push_back(start[static_cast<std::int64_t>(i)].item<float>() +
                       end[static_cast<std::int64_t>(j)].item<float>());
    }
  }
  const auto name = [ranges, text = *place.texts.text_pair](std::int64_t id) {
    const ByteRange range = ranges[static_cast<std::size_t>(id)];
    return text.substr(range.begin, range.end - range.begin);
  };
  return {.kind = "span", .logits = at::tensor(logits), .name = name};
}

// "token", "label", "labels" or "score"; empty for a head that this page has no picture of.
std::string kind_of(const TextModel& model, const at::Tensor& logits) {
  if (!logits.defined() || model.model->parts().head.is_flag) return "";
  if (logits.dim() == 3) return gives_labels(model) ? "label" : "token";
  const ProblemType problem = model.model->config().problem_type;
  if (problem == ProblemType::kMultiLabel) return "labels";
  return logits.size(1) == 1 || problem == ProblemType::kRegression ? "score" : "label";
}

std::string rest_of(const at::Tensor& logits, const at::Tensor& named) {
  at::Tensor others = at::ones({logits.size(0)}, at::kBool);
  others.index_fill_(0, named, 0);
  return base64_of(logits.masked_select(others));
}

at::Tensor best(const LookAnswer& answer) {
  return std::get<1>(answer.logits.topk(std::min(kNamed, answer.logits.size(0))));
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

std::string base64_of(const at::Tensor& numbers) {
  const at::Tensor whole = numbers.cpu().contiguous();
  return encode_base64({static_cast<const char*>(whole.const_data_ptr()), whole.nbytes()});
}

std::optional<LookAnswer> look_answer(const TextModel& model, const LookPlace& place,
                                      const ModelOutput& output) {
  if (output.start_logits.defined() && place.texts.text_pair) return span_answer(place, output);
  LookAnswer answer{.kind = kind_of(model, output.logits), .name = place.token_name};
  if (answer.kind.empty()) return std::nullopt;
  if (answer.kind != "token")
    answer.name = [&model](std::int64_t id) { return answer_numbered(model, id).name; };
  at::Tensor logits = output.logits[0];
  if (logits.dim() == 2) logits = logits[logits.size(0) == 1 ? 0 : place.position];
  answer.logits = logits.to(at::kFloat).cpu().contiguous();
  return answer;
}

ordered_json json_of(const LookAnswer& answer, const std::optional<LookAnswer>& plain) {
  at::Tensor ids = best(answer);
  if (plain) {
    ids = std::get<0>(at::_unique(at::cat({ids, best(*plain)})));
    ids = ids.index_select(0, answer.logits.index_select(0, ids).argsort(0, /*descending=*/true));
  }
  ordered_json json{{"kind", answer.kind}, {"count", answer.logits.size(0)}};
  json["ids"] = std::vector<std::int64_t>(ids.const_data_ptr<std::int64_t>(),
                                          ids.const_data_ptr<std::int64_t>() + ids.numel());
  json["names"] = ordered_json::array();
  for (const auto& id : json["ids"]) json["names"].push_back(answer.name(id.get<std::int64_t>()));
  json["logits"] = json_numbers(answer.logits.index_select(0, ids));
  json["rest"] = rest_of(answer.logits, ids);
  if (!plain) return json;
  json["plain"] = {{"logits", json_numbers(plain->logits.index_select(0, ids))},
                   {"rest", rest_of(plain->logits, ids)}};
  if (answer.kind == "labels" || answer.kind == "score") return json;
  json["divergence"] =
      analysis::divergence(at::log_softmax(plain->logits, -1), at::log_softmax(answer.logits, -1))
          .item<double>();
  return json;
}

ordered_json json_of(const analysis::InsideBlock& inside, std::int64_t position,
                     const std::function<std::string(std::int64_t)>& token_name) {
  ordered_json norms = ordered_json::array(), neurons = norms, experts = norms;
  for (const analysis::NormNumbers& norm : inside.norms) {
    norms.push_back({{"name", norm.name},
                     {"mean", norm.mean ? ordered_json(*norm.mean) : ordered_json()},
                     {"divisor", norm.divisor},
                     {"before", norm.before},
                     {"after", norm.after}});
  }
  for (const analysis::Neuron& neuron : inside.neurons) {
    ordered_json tokens = ordered_json::array();
    for (const std::int64_t id : neuron.tokens) tokens.push_back(token_name(id));
    neurons.push_back({{"id", neuron.id},
                       {"activation", neuron.activation},
                       {"strength", neuron.strength},
                       {"tokens", std::move(tokens)}});
  }
  for (std::int64_t i = 0; inside.experts.defined() && i < inside.experts.size(0); ++i) {
    ordered_json chosen = ordered_json::array();
    for (std::int64_t k = 0; k < inside.experts.size(1); ++k)
      chosen.push_back({{"expert", inside.experts[i][k].item<std::int64_t>()},
                        {"weight", inside.expert_weights[i][k].item<double>()}});
    experts.push_back(std::move(chosen));
  }
  return {{"position", position},
          {"norms", std::move(norms)},
          {"neurons", std::move(neurons)},
          {"experts", std::move(experts)}};
}

}  // namespace zoo
