#include "apps/serve/service.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "apps/hub/hub_cache.h"
#include "apps/plots/embedded_page.h"
#include "data/base/base64.h"
#include "data/base/field_error.h"
#include "data/base/json.h"
#include "data/corpora/sha256.h"
#include "models/model.h"
#include "models/tasks/look_texts.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

// As a policy names an inline script or style: by the SHA-256 of its text.
std::string source_of(std::string_view text) {
  const std::string digits = sha256(text);
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return "'sha256-" + encode_base64(bytes) + "'";
}

// The page of GET /, which asks the server for everything that it shows. Its Content-Security-Policy: it runs
// its own script alone and reaches this server alone.
WebReply front_page() {
  static const std::string page = embedded::whole_page(embedded::kServePage);
  static const std::string policy =
      "default-src 'none'; script-src " + source_of(embedded::kServePage.script) + "; style-src " +
      source_of(embedded::kServePage.style) +
      "; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
  return {.type = "text/html; charset=utf-8",
          .body = page,
          .headers = {{"Content-Security-Policy", policy}, {"Referrer-Policy", "no-referrer"}}};
}

// clang-format off
constexpr std::pair<const char*, WebReply (*)(ApiCall&)> kEndpoints[]{
    {"/v1/completions", answer_completion}, {"/v1/chat/completions", answer_chat_completion},
    {"/v1/embeddings", answer_embeddings},  {"/v1/messages", answer_message},
    {"/tokenize", answer_tokenize},         {"/detokenize", answer_detokenize},
    {"/fill-mask", answer_fill_mask},       {"/classify", answer_classify},
    {"/answer", answer_question},           {"/translate", answer_translate},
    {"/look", answer_look},                 {"/v1/rerank", answer_rerank},
    {"/rerank", answer_rerank},             {"/v1/responses", answer_response},
    {"/embed", answer_embed},               {"/similarity", answer_similarity},
    {"/predict", answer_predict},           {"/v2/rerank", answer_rerank},
    {"/v1/messages/count_tokens", answer_message_count}};
// clang-format on
constexpr std::array kPages{"/", "/health", "/metrics", "/v1/models", "/run"};

// A path as the metrics name it: those that are not ours are one.
std::string known_path(const std::string& path) {
  for (const auto& [own, answer] : kEndpoints)
    if (path == own) return path;
  return std::find(kPages.begin(), kPages.end(), path) == kPages.end() ? "other" : path;
}

WebReply reply_to(const ApiError& error) {
  WebReply reply{.status = error.status, .body = error.json()};
  if (error.status == 401) reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  if (error.status == 429) reply.headers.emplace_back("Retry-After", "1");
  return reply;
}

// The error of a request that the server ended.
WebReply guarded(const std::function<WebReply()>& answer) {
  try {
    return answer();
  } catch (const ApiError& error) {
    return reply_to(error);
  } catch (const ClientLeft&) {
    return {.status = 499};
  } catch (const TokenCountError& error) {
    ApiError told(400, error.what(), error.field(), error.tokens == 0 ? "" : "context_length_exceeded");
    told.tokens = {error.tokens, error.limit};
    return reply_to(told);
  } catch (const FieldError& error) {
    return reply_to(ApiError(400, error.what(), error.field()));
  } catch (const Error& error) {
    return reply_to(ApiError(400, error.what()));
  } catch (const std::exception& error) {
    return reply_to(ApiError(500, plain_message(error)));
  }
}

ordered_json described(const ServedModel& model) {
  ordered_json json{
      {"id", model.name}, {"object", "model"}, {"created", model.created}, {"owned_by", "tzoo"}};
  json["family"] = model.model_type;
  json["head"] = model.head;
  json["vocabulary"] = model.vocabulary;
  if (const auto mask = model.tokenizer->special_id(SpecialToken::mask))
    json["mask_token"] = model.tokenizer->token_text(*mask);
  return json;
}

constexpr std::size_t kMostRows = 2000;

ordered_json number_at(const ordered_json& row, const char* name) {
  const auto found = row.find(name);
  return found != row.end() && found->is_number() ? *found : ordered_json();
}

WebReply list_models(const ServerState& state) {
  ordered_json list = ordered_json::array();
  for (const auto& model : state.models) list.push_back(described(*model));
  ordered_json json{{"object", "list"}, {"data", list}};
  if (!state.options.run.empty()) json["run"] = model_name(state.options.run);
  return {.body = json_text(json)};
}

WebReply show_metrics(const ServerState& state) {
  double waiting = static_cast<double>(state.thread.waiting_pieces()), rows = 0, read = 0, reused = 0,
         written = 0, automata = 0;
  std::set<const WritingModel*> counted;
  for (const auto& model : state.models) {
    if (!model->writing || !counted.insert(model->writing.get()).second) continue;
    automata += static_cast<double>(model->writing->automata.built());
    if (model->adapter != 0) continue;  // the batch is its base's
    const ContinuousBatch& batch = *model->writing->batch;
    waiting += static_cast<double>(batch.waiting());
    rows += static_cast<double>(batch.rows());
    read += static_cast<double>(batch.prompt_tokens());
    reused += static_cast<double>(batch.reused_tokens());
    written += static_cast<double>(batch.written_tokens());
  }
  return {.type = "text/plain; version=0.0.4",
          .body = state.metrics.text(
              {{"tzoo_requests_waiting", "gauge", "Requests that wait for their turn.", waiting},
               {"tzoo_batch_rows", "gauge", "Rows that share a decoding step.", rows},
               {"tzoo_prompt_tokens_total", "counter", "Tokens of prompts read.", read},
               {"tzoo_prompt_tokens_cached_total", "counter", "Tokens of prompts that were not read again.",
                reused},
               {"tzoo_generated_tokens_total", "counter", "Tokens written.", written},
               {"tzoo_constraints_built_total", "counter", "Automata of regular expressions and schemas.",
                automata},
               {"tzoo_job_pieces_total", "counter", "Pieces of the work that no batch does.",
                static_cast<double>(state.thread.pieces())},
               {"tzoo_text_passes_total", "counter", "Passes over texts, which requests share.",
                static_cast<double>(state.passes.count())},
               {"tzoo_steps_total", "counter", "Steps of all batches.",
                static_cast<double>(state.thread.steps())}})};
}

constexpr std::string_view kModelPath = "/v1/models/", kResponsePath = "/v1/responses/";

WebReply route(ServerState& state, const WebRequest& request) {
  if (request.method == "OPTIONS")
    return {.status = 204,
            .headers = {{"Access-Control-Allow-Methods", "GET, POST, DELETE"},
                        // Clients in a browser send headers of their own.
                        {"Access-Control-Allow-Headers",
                         request.header("Access-Control-Request-Headers")
                             .value_or("Authorization, Content-Type, X-Api-Key, Anthropic-Version")},
                        {"Access-Control-Max-Age", "600"}}};
  const bool is_post = request.method == "POST";
  for (const auto& [path, answer] : kEndpoints) {
    if (request.path != path) continue;
    if (!is_post) throw ApiError(405, request.path + " needs the method POST");
    if (state.stopping) throw ApiError(503, "the server stops");
    ApiCall call{state, request};
    return answer(call);
  }
  if (!is_post && request.path.starts_with(kResponsePath))
    return answer_kept(state, request, request.path.substr(kResponsePath.size()));
  const bool is_page = known_path(request.path) != "other" || request.path.starts_with(kModelPath);
  if (!is_page) throw ApiError(404, "there is nothing at this path", "", "not_found");
  if (is_post) throw ApiError(405, request.path + " needs the method GET");
  if (request.path == "/health") return {.body = R"({"status":"ok"})"};
  if (request.path == "/metrics") return show_metrics(state);
  if (request.path == "/v1/models") return list_models(state);
  if (request.path == "/run") {
    if (state.options.run.empty()) throw ApiError(404, "no run is watched; --run names one", "", "not_found");
    return {.body = watched_run(state.options.run)};
  }
  if (request.path == "/") return front_page();
  for (const auto& model : state.models)
    if (model->name == request.path.substr(kModelPath.size())) return {.body = json_text(described(*model))};
  throw ApiError(404, "there is no such model; /v1/models lists those there are", "model", "model_not_found");
}

WebReply with_origin(const AccessRules& rules, const WebRequest& request, WebReply reply) {
  const std::optional<std::string> origin = request.header("Origin");
  if (reply.status >= 400 && !reply.body.empty() && request.path.starts_with("/v1/messages"))
    reply.body = json_text(anthropic_error(reply.status, parse_ordered_json(reply.body)["error"]["message"]));
  reply.headers.emplace_back("X-Content-Type-Options", "nosniff");
  if (!origin || !rules.allows_origin(*origin)) return reply;
  reply.headers.emplace_back("Access-Control-Allow-Origin", *origin);
  reply.headers.emplace_back("Vary", "Origin");
  return reply;
}

}  // namespace

ServedModel& ServerState::model_of(RequestFields& fields) {
  const std::optional<std::string> name = fields.text("model");
  if (!name) return *models.front();
  for (const auto& model : models)
    if (model->name == *name) return *model;
  throw ApiError(404,
                 "there is no model '" + excerpt(*name, 100) + "' here; /v1/models lists those there are",
                 "model", "model_not_found");
}

std::string watched_run(const std::filesystem::path& run) {
  const std::filesystem::path path = run / "metrics.jsonl";
  std::ifstream file(path);
  if (!file) throw Error(path, " cannot be read: is this the directory of a training run?");
  std::vector<ordered_json> rows;
  for (std::string line; std::getline(file, line);) {
    // The last line may be half written.
    const ordered_json row = parse_ordered_json(line);
    if (!row.is_object() || !row.contains("iter")) continue;
    rows.push_back({number_at(row, "iter"), number_at(row, "train_loss"), number_at(row, "val_loss"),
                    number_at(row, "tokens_per_second")});
  }
  const std::size_t step = rows.size() / kMostRows + 1;
  ordered_json kept = ordered_json::array();
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (i % step == 0 || i + 1 == rows.size() || !rows[i][2].is_null()) kept.push_back(std::move(rows[i]));
  return json_text(ordered_json{{"name", model_name(run)}, {"rows", std::move(kept)}});
}

std::optional<WebReply> refuse_request(ServerState& state, const AccessRules& rules,
                                       const WebRequest& request) {
  const std::optional<ApiError> error = rules.refusal(request);
  if (!error) return std::nullopt;
  state.metrics.answered(known_path(request.path), error->status, 0);
  return with_origin(rules, request, reply_to(*error));
}

WebReply answer_request(ServerState& state, const AccessRules& rules, const WebRequest& request) {
  const RequestWatch watch = state.watch(request);
  WebReply reply = guarded([&] { return route(state, request); });
  const auto count = [&state, path = known_path(request.path), status = reply.status, watch] {
    state.metrics.answered(path, status, watch.seconds());
  };
  if (reply.stream) {
    reply.stream = [count, stream = reply.stream](const auto& write) {
      stream(write);
      count();
    };
  } else {
    count();
  }
  return with_origin(rules, request, std::move(reply));
}

}  // namespace zoo
