#include "apps/serve/generation_call.h"

#include "apps/serve/api_error.h"
#include "data/base/error.h"

namespace zoo {

// Between the thread that computes and the one that answers.
struct GenerationCall::Mailbox {
  void put(WritingEvent event) {
    {
      const std::lock_guard lock(mutex);
      events.push_back(std::move(event));
    }
    arrived.notify_one();
  }

  std::mutex mutex;
  std::condition_variable arrived;
  std::deque<WritingEvent> events;
  std::optional<std::string> failure;
};

GenerationCall::GenerationCall(WritingRequest request, ContinuousBatch& batch, WritingPlace place)
    : request_(std::move(request)),
      place_(std::move(place)),
      mailbox_(std::make_shared<Mailbox>()),
      rows_(request_.batch->prompts.size() * static_cast<std::size_t>(request_.batch->samples)) {
  using Kind = WritingEvent::Kind;
  BatchRequest& own = *request_.batch;
  // The session lives as long as the request, whose options refer to it.
  const auto session = request_.session;
  own.on_prompt = [box = mailbox_, session](std::size_t prompt, const std::vector<ScoredToken>& scores) {
    box->put({.kind = Kind::kPrompt, .row = prompt, .scores = scores});
  };
  own.on_token = [box = mailbox_](std::size_t row, const ScoredToken& token) {
    box->put({.kind = Kind::kToken, .row = row, .token = token});
  };
  own.on_end = [box = mailbox_](std::size_t row, RowEnd end) {
    box->put({.kind = Kind::kEnd, .row = row, .end = end});
  };
  own.on_failure = [box = mailbox_](const std::string& message) {
    {
      const std::lock_guard lock(box->mutex);
      box->failure = message;
    }
    box->arrived.notify_one();
  };
  bool taken = false;
  try {
    taken = batch.submit(request_.batch);
  } catch (const Error& error) {
    throw ApiError(400, error.what());
  }
  if (!taken) throw ApiError(429, "too many requests wait; try again later", "", "queue_full");
  place_.thread.wake();
}

GenerationCall::~GenerationCall() {
  request_.batch->cancelled = true;
  place_.thread.wake();
}

std::int64_t GenerationCall::prompt_tokens() const {
  std::int64_t count = 0;
  for (const TokenIds& prompt : request_.batch->prompts) count += static_cast<std::int64_t>(prompt.size());
  return count;
}

std::optional<WritingEvent> GenerationCall::next() {
  if (ended_ == rows_) return std::nullopt;
  for (;;) {
    place_.watch.check();
    std::unique_lock lock(mailbox_->mutex);
    mailbox_->arrived.wait_for(lock, RequestWatch::kInterval,
                               [&] { return !mailbox_->events.empty() || mailbox_->failure; });
    if (mailbox_->events.empty()) {
      if (mailbox_->failure) throw ApiError(400, *mailbox_->failure);
      continue;
    }
    WritingEvent event = std::move(mailbox_->events.front());
    mailbox_->events.pop_front();
    lock.unlock();
    if (event.kind == WritingEvent::Kind::kEnd) ++ended_;
    if (event.kind == WritingEvent::Kind::kToken && !std::exchange(has_token_, true))
      place_.metrics.first_token(place_.watch.seconds());
    return event;
  }
}

}  // namespace zoo
