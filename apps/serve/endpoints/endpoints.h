#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/serve/generation_call.h"
#include "apps/serve/request_fields.h"
#include "apps/serve/served_model.h"
#include "apps/serve/shared_passes.h"
#include "apps/serve/web/web_server.h"

namespace zoo {

/// The last answers and the items that they answer, as JSON texts; beyond a number or size the oldest are
/// forgotten.
class ConversationStore {
 public:
  struct Kept {
    std::string id, answer, input;
    std::size_t bytes() const { return answer.size() + input.size(); }
  };

  void put(Kept kept) {
    constexpr std::size_t kMost = 1000, kMostBytes = std::size_t{64} << 20;
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(kept));
    std::size_t bytes = 0;
    for (const Kept& each : all_) bytes += each.bytes();
    for (; all_.size() > kMost || bytes > kMostBytes; all_.pop_front()) bytes -= all_.front().bytes();
  }

  std::optional<Kept> get(const std::string& id) const {
    const std::lock_guard lock(mutex_);
    const auto place = std::ranges::find(all_, id, &Kept::id);
    return place == all_.end() ? std::nullopt : std::optional(*place);
  }

  void forget(const std::string& id) {
    const std::lock_guard lock(mutex_);
    std::erase_if(all_, [&](const Kept& kept) { return kept.id == id; });
  }

 private:
  mutable std::mutex mutex_;
  std::deque<Kept> all_;
};

/// The parts of the server that every endpoint may use.
struct ServerState {
  std::vector<std::unique_ptr<ServedModel>> models;  // the first one is the default
  ServeOptions options;
  ComputeThread thread;
  SharedPasses passes;
  ServerMetrics metrics;
  ConversationStore conversations;  // of /v1/responses
  std::atomic<bool> stopping = false;

  RequestWatch watch(const WebRequest& request) const {
    return {request.client_left, stopping, options.seconds};
  }
  /// Runs the passes of a job on the thread, shared with other requests.
  RunPass shared(ComputeJob& job) {
    return [this, &job](const TextPass& pass, const auto& texts) { return passes.run(job, pass, texts); };
  }
  WritingPlace writing_place(const WebRequest& request) { return {thread, metrics, watch(request)}; }
  /// The model that the field "model" names. Throws ApiError 404.
  ServedModel& model_of(RequestFields& fields);
};

/// A POST that is being answered: its fields, and the model that its field "model" names.
struct ApiCall {
  ServerState& state;
  const WebRequest& request;
  RequestFields fields{request.body};
  ServedModel& served = state.model_of(fields);

  /// Its work on the compute thread, once all fields are read. Throws ApiError naming an unknown one.
  ComputeJob job() const {
    fields.refuse_others();
    return ComputeJob(state.thread, state.watch(request));
  }
  /// Of the model, whose first use may load it.
  const ServedEmbedder& embedder(ComputeJob& job) const;
};

/// Whether "truncate" asks to cut a text that is too long, as text-embeddings-inference (TEI) reads it;
/// `usual` if it is missing. Throws ApiError for a "truncation_direction" other than right.
bool truncates_as_tei(RequestFields& fields, bool usual);

/// Each answers a POST to a path, or throws ApiError.
WebReply answer_completion(ApiCall& call);       // /v1/completions
WebReply answer_chat_completion(ApiCall& call);  // /v1/chat/completions
WebReply answer_message(ApiCall& call);          // /v1/messages
WebReply answer_message_count(ApiCall& call);    // /v1/messages/count_tokens
WebReply answer_response(ApiCall& call);         // /v1/responses
WebReply answer_embeddings(ApiCall& call);       // /v1/embeddings
WebReply answer_embed(ApiCall& call);            // /embed, as TEI's
WebReply answer_similarity(ApiCall& call);       // /similarity, as TEI's
WebReply answer_predict(ApiCall& call);          // /predict, as TEI's
WebReply answer_tokenize(ApiCall& call);         // /tokenize
WebReply answer_detokenize(ApiCall& call);       // /detokenize
WebReply answer_fill_mask(ApiCall& call);        // /fill-mask
WebReply answer_classify(ApiCall& call);         // /classify
WebReply answer_question(ApiCall& call);         // /answer
WebReply answer_rerank(ApiCall& call);           // /rerank, /v1/rerank, /v2/rerank
WebReply answer_translate(ApiCall& call);        // /translate
WebReply answer_look(ApiCall& call);             // /look

/// GET and DELETE of /v1/responses/ID, GET of /v1/responses/ID/input_items: an answer of /v1/responses that
/// is kept, by the path after /v1/responses/. Throws ApiError 404.
WebReply answer_kept(ServerState& state, const WebRequest& request, const std::string& path);

/// GET /run: the losses of a training run so far, as JSON: {"name", "rows": [[iteration, training loss,
/// validation loss or null, tokens a second], …]}. Of many rows without a validation loss some are left out.
/// Throws Error naming a metrics.jsonl that cannot be read.
std::string watched_run(const std::filesystem::path& run);

}  // namespace zoo
