#include <algorithm>
#include <cmath>
#include <map>

#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>
#include <nlohmann/json.hpp>

#include "apps/answers/answers.h"
#include "apps/command/output.h"
#include "apps/serve/endpoints/endpoints.h"
#include "apps/serve/endpoints/look_parts.h"
#include "apps/serve/writing_reply.h"
#include "data/base/json.h"
#include "models/analysis/inside_block.h"
#include "models/analysis/logit_lens.h"
#include "models/analysis/rollout.h"
#include "models/analysis/sweep.h"
#include "models/layers/stack.h"
#include "models/tasks/look_texts.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMostTokens = 1024;  // their attention has 600 MB in 12 layers of 12 heads

// Weights in [0, 1] as bytes 0 to 255, in base64.
std::string levels(const at::Tensor& weights) {
  return base64_of((weights.to(at::kFloat) * 255.0).round().clamp(0, 255).to(at::kByte));
}

ordered_json described(const Model& model, Shape chosen) {
  const ModelParts parts = model.parts();
  const TransformerConfig& stack = (chosen == Shape::kEncoder ? parts.encoder : parts.decoder)->config();
  const auto list = fields_of(stack);
  const std::map<std::string_view, std::string> fields(list.begin(), list.end());
  return {{"kind", parts.encoder && parts.decoder ? "encoder-decoder" : fields.at("shape")},
          {"stack", fields.at("shape")},
          {"layers", stack.num_layers},
          {"heads", stack.num_heads},
          {"width", stack.hidden_size},
          {"cross", stack.cross_attention},
          {"positions", fields.at("position")},
          {"norm", fields.at("norm_placement")},
          {"parallel", stack.sublayer_order != SublayerOrder::kSequential}};
}

// A look at one text, in steps, each of at most two passes of the model: others take turns between them.
class Look {
 public:
  Look(ServedModel& served, LookedModel& loaded, LookRequest request)
      : served_(served), model_(loaded.model), request_(std::move(request)), defaults_(loaded.defaults) {
    read_ = read("text", request_.texts);
    position_ = answer_position(model_, read_, request_.position, /*needs_mask=*/false);
    analysis::LogitTarget target{.position = position_};
    inputs_ = analysis::answering_inputs(*model_.model, read_.inputs, target);
  }

  void intervene() {
    if (!request_.off.empty())
      interventions_ = analysis::ablated(*model_.model, inputs_, request_.off, request_.with);
    if (!request_.patch) return;
    for (Intervention& each : patched()) interventions_.push_back(std::move(each));
  }
  void run() {
    ModelInputs inputs = inputs_;
    inputs.interventions = interventions_;
    inputs.output_attentions = request_.layer.has_value();
    run_ = analysis::run(*model_.model, inputs);
  }
  void run_plain() {
    if (!interventions_.empty()) plain_ = analysis::run(*model_.model, inputs_).output;
  }

  ordered_json json() const {
    const LookPlace place{
        .texts = request_.texts, .read = read_, .position = position_, .token_name = [this](std::int64_t id) {
          return name(id);
        }};
    const std::optional<LookAnswer> answer = look_answer(model_, place, run_.output);
    std::optional<LookAnswer> plain;
    if (plain_) plain = look_answer(model_, place, *plain_);
    ordered_json json{{"model", served_.name}, {"shape", described(*model_.model, request_.stack)}};
    json["tokens"] = tokens(read_.inputs.input_ids);
    if (is_pair()) json["written"] = tokens(read_.inputs.decoder_input_ids);
    if (!request_.texts.appended.empty()) json["text"] = continued_text();
    json["position"] = position_;
    json["answer"] = answer ? json_of(*answer, plain) : ordered_json();
    json["lens"] = lens(run_);
    json["norms"] = json_numbers(stream_norms(run_).select(1, 0).cpu());
    if (request_.layer) json["attention"] = attention(run_.output);
    if (request_.layer) json["inside"] = inside(*request_.layer);
    return json;
  }

 private:
  TextInputs read(const char* field, const ModelTexts& texts) const {
    TextInputs inputs = read_texts(model_, texts, defaults_, field);
    const std::size_t tokens = std::max(inputs.source.size(), inputs.written.size());
    if (tokens <= kMostTokens) return inputs;
    throw TokenCountError(field, tokens, kMostTokens);
  }
  bool is_pair() const { return model_.model->config().shape == Shape::kEncoderDecoder; }
  bool opens_encoder() const { return is_pair() && request_.stack == Shape::kEncoder; }

  std::vector<Intervention> patched() const {
    ModelTexts texts = request_.texts;
    texts.text = request_.patch->text;
    // The decoder of an encoder-decoder reads the same in both runs; a decoder reads the other text alone.
    if (!is_pair()) texts.appended.clear();
    const TextInputs other = read("patch_text", texts);
    if (other.source.size() != read_.source.size())
      RequestFields::refuse(
          "patch_text", "has " + std::to_string(other.source.size()) + " tokens, but the text has " +
                            std::to_string(read_.source.size()) + "; a state is patched at its own position");
    const bool of_written = is_pair() && request_.stack == Shape::kDecoder;
    const auto length = static_cast<std::int64_t>((of_written ? read_.written : read_.source).size());
    const std::vector<std::int64_t>& positions = request_.patch->positions;
    if (!positions.empty() && positions.back() >= length)
      RequestFields::refuse("patch_positions", "must be below " + std::to_string(length));
    const analysis::Run run = analysis::run(*model_.model, other.inputs);
    return analysis::patches(*model_.model, run, {request_.patch->site}, positions);
  }

  // A decoder's token as it adds to a text, a space included; else as the vocabulary writes it.
  std::string name(std::int64_t id) const {
    if (served_.writing && id < model_.tokenizer->vocab_size()) {
      const std::string& bytes = served_.writing->token_bytes()[static_cast<std::size_t>(id)];
      if (!bytes.empty()) return replace_invalid_utf8(bytes);
    }
    return token_name(model_, id);
  }

  ordered_json tokens(const at::Tensor& ids) const {
    ordered_json list = ordered_json::array();
    for (std::int64_t i = 0; i < ids.size(1); ++i) {
      const auto id = ids[0][i].item<std::int64_t>();
      std::string bytes;
      for (const unsigned char byte : bytes_of_token(static_cast<TokenId>(id), *model_.tokenizer))
        bytes += (bytes.empty() ? "" : " ") + format_text("%02X", byte);
      list.push_back({{"id", id}, {"token", name(id)}, {"bytes", bytes}});
    }
    return list;
  }

  // The text, or an encoder-decoder's target, with what the appended ids add to it.
  std::string continued_text() const {
    const std::string& text = is_pair() ? *request_.texts.target : request_.texts.text;
    TokenIds ids = model_.tokenizer->encode(text);
    const std::string before = model_.tokenizer->decode_with_special_tokens(ids);
    for (const TokenId id : request_.texts.appended)
      if (id < model_.tokenizer->vocab_size()) ids.push_back(id);  // others have no text: a padded vocabulary
    const std::string after = model_.tokenizer->decode_with_special_tokens(ids);
    return replace_invalid_utf8(after.starts_with(before) ? text + after.substr(before.size()) : after);
  }

  ordered_json lens(const analysis::Run& run) const {
    if (!analysis::has_lens(*model_.model)) return nullptr;
    const analysis::LogitLens lens = logit_lens(*model_.model, run, {.top_k = 5, .positions = {position_}});
    ordered_json layers = ordered_json::array();
    for (std::int64_t layer = 0; layer < lens.ids.size(0); ++layer) {
      ordered_json answers = ordered_json::array();
      for (std::int64_t k = 0; k < lens.ids.size(2); ++k) {
        const auto id = lens.ids[layer][0][k].item<std::int64_t>();
        const bool label = gives_labels(model_);
        answers.push_back({{"id", id},
                           {"name", label ? answer_numbered(model_, id).name : name(id)},
                           {"probability", lens.probabilities[layer][0][k].item<double>()}});
      }
      layers.push_back({{"answers", std::move(answers)},
                        {"entropy", lens.entropies[layer][0].item<double>()},
                        {"divergence", lens.divergences[layer][0].item<double>()}});
    }
    return layers;
  }

  ordered_json attention(const ModelOutput& output) const {
    const std::vector<at::Tensor>& self = opens_encoder() ? output.encoder_attentions : output.attentions;
    const auto layer = static_cast<std::size_t>(*request_.layer);
    ordered_json maps = ordered_json::array();
    const auto add = [&](const char* kind, const at::Tensor& weights) {
      maps.push_back({{"kind", kind},
                      {"heads", weights.size(1)},
                      {"queries", weights.size(2)},
                      {"keys", weights.size(3)},
                      {"weights", levels(weights[0])}});
    };
    add("self", self.at(layer));
    if (is_pair() && !opens_encoder()) add("cross", output.cross_attentions.at(layer));
    const std::vector<at::Tensor> below(self.begin(), self.begin() + *request_.layer + 1);
    ordered_json json{{"layer", *request_.layer},
                      {"maps", std::move(maps)},
                      {"rollout", levels(analysis::attention_rollout(below)[-1][0])}};
    if (request_.head)
      json["steps"] = steps(output, (request_.crosses ? output.cross_attentions : self).at(layer));
    return json;
  }

  // At the answer's position, as far as the opened stack has it.
  ordered_json inside(std::int64_t layer) const {
    const ModelParts parts = model_.model->parts();
    const bool encoder = opens_encoder();
    const auto at = static_cast<std::size_t>(layer);
    const at::Tensor& input = encoder ? run_.output.encoder_hidden_states[at] : run_.stream[at];
    const auto& layers = encoder ? run_.output.encoder_activations : run_.output.activations;
    const std::int64_t position = std::min(position_, input.size(1) - 1);
    const auto numbers = analysis::inside_block(
        *model_.model, request_.stack == Shape::kEncoder ? *parts.encoder : *parts.decoder, layer,
        {input, layers[at]}, position);
    return json_of(numbers, position, [this](std::int64_t id) { return name(id); });
  }

  // What a query's weights are computed from; null for attentions that do not compare queries with keys.
  ordered_json steps(const ModelOutput& output, const at::Tensor& weights) const {
    const auto& layers = opens_encoder() ? output.encoder_activations : output.activations;
    const LayerActivations& layer = layers[static_cast<std::size_t>(*request_.layer)];
    const AttentionInputs& in = request_.crosses ? layer.cross_attention_inputs : layer.attention_inputs;
    if (!in.queries.defined() || in.options.relative_keys.defined()) return nullptr;
    const std::int64_t head = *request_.head, length = weights.size(2);
    const std::int64_t query = request_.query.value_or(std::min(position_, length - 1));
    if (query >= length) RequestFields::refuse("query", "must be below " + std::to_string(length));
    const auto of_query = [&](const at::Tensor& of_all) { return of_all[0][head][query]; };
    const auto of_group = [&](const at::Tensor& x) { return x[0][head * x.size(1) / weights.size(1)]; };
    at::Tensor added = at::zeros_like(weights);
    if (in.mask.bias.defined()) added += in.mask.bias;
    if (in.mask.causal) added.masked_fill_(at::ones_like(added, at::kBool).triu(1), -INFINITY);
    ordered_json json{{"scale", in.options.scale != 0 ? in.options.scale : 1 / std::sqrt(in.queries.size(3))},
                      {"softcap", in.options.softcap},
                      {"query", base64_of(of_query(in.queries))},
                      {"keys", base64_of(of_group(in.keys))},
                      {"values", base64_of(of_group(in.values))},
                      {"added", base64_of(of_query(added))},
                      {"weights", base64_of(of_query(weights))}};
    if (in.unrotated_keys.defined())
      json["unrotated"] = base64_of(of_group(in.unrotated_keys).mv(of_query(in.unrotated_queries)));
    return json;
  }

  ServedModel& served_;
  const TextModel& model_;
  LookRequest request_;
  const GenerationConfig& defaults_;
  TextInputs read_;
  ModelInputs inputs_;
  std::int64_t position_ = 0;
  std::vector<Intervention> interventions_;
  analysis::Run run_;
  std::optional<ModelOutput> plain_;  // without the interventions
};

}  // namespace

WebReply answer_look(ApiCall& call) {
  std::optional<Look> look;
  ordered_json json;
  // A page asks again with each key; what it no longer waits for is not computed.
  ComputeJob job(call.state.thread, call.state.watch(call.request));
  const std::function<void()> steps[] = {
      [&] {
        LookedModel& loaded = inside_of(call.served, call.state.options);
        LookRequest asked = read_look(call.fields, loaded.model);
        call.fields.refuse_others();
        look.emplace(call.served, loaded, std::move(asked));
      },
      [&] { look->intervene(); },
      [&] { look->run(); },
      [&] { look->run_plain(); },
      [&] { json = look->json(); },
  };
  for (const auto& step : steps) {
    job.run([&] {
      const at::NoGradGuard no_grad;
      step();
    });
  }
  return {.body = json_text(json)};
}

}  // namespace zoo
