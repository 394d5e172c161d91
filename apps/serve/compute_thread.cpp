#include "apps/serve/compute_thread.h"

#include <exception>

#include "apps/command/output.h"
#include "apps/serve/api_error.h"

namespace zoo {

double RequestWatch::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void RequestWatch::check() const {
  if (client_left && client_left()) throw ClientLeft();
  if (stopping) throw ApiError(503, "the server stops");
  if (seconds() > most_seconds)
    throw ApiError(503, format_text("the request took longer than %g seconds", most_seconds));
}

struct ComputeThread::Piece {
  const std::function<void()>& work;
  std::condition_variable ended;
  std::exception_ptr error;
  bool begun = false, done = false;
};

void ComputeThread::start(std::function<void()> begin) {
  thread_ = std::thread([this, begin = std::move(begin)] {
    begin();
    loop();
  });
}

void ComputeThread::stop() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ComputeThread::wake() {
  const std::lock_guard lock(mutex_);
  awake_ = true;
  changed_.notify_all();
}

std::size_t ComputeThread::waiting_pieces() const {
  const std::lock_guard lock(mutex_);
  return pieces_.size();
}

ComputeJob::ComputeJob(ComputeThread& thread, RequestWatch watch)
    : thread_(thread), watch_(std::move(watch)) {
  const std::lock_guard lock(thread_.mutex_);
  if (thread_.jobs_ >= thread_.most_jobs_)
    throw ApiError(429, "too many requests wait; try again later", "", "queue_full");
  ++thread_.jobs_;
}

ComputeJob::~ComputeJob() {
  const std::lock_guard lock(thread_.mutex_);
  --thread_.jobs_;
}

void ComputeJob::run(const std::function<void()>& work) {
  watch_.check();
  ComputeThread::Piece piece{.work = work};
  std::unique_lock lock(thread_.mutex_);
  if (thread_.stops_) throw ApiError(503, "the server stops");
  thread_.pieces_.push_back(&piece);
  thread_.changed_.notify_all();
  while (!piece.ended.wait_for(lock, RequestWatch::kInterval, [&] { return piece.done; })) {
    if (piece.begun) continue;
    try {
      watch_.check();
    } catch (...) {
      std::erase(thread_.pieces_, &piece);
      throw;
    }
  }
  if (piece.error) std::rethrow_exception(piece.error);
}

bool ComputeThread::do_piece() {
  Piece* piece = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (pieces_.empty()) return false;
    piece = pieces_.front();
    pieces_.pop_front();
    piece->begun = true;
  }
  std::exception_ptr error;
  try {
    piece->work();
  } catch (...) {
    error = std::current_exception();
  }
  ++done_;
  const std::lock_guard lock(mutex_);
  piece->error = error;
  piece->done = true;
  piece->ended.notify_one();
  return true;
}

void ComputeThread::loop() {
  for (;;) {
    bool busy = false;
    for (ContinuousBatch* batch : batches_) {
      if (!batch->step()) continue;
      busy = true;
      ++steps_;
    }
    busy = do_piece() || busy;
    std::unique_lock lock(mutex_);
    if (!busy) changed_.wait(lock, [&] { return awake_ || stops_ || !pieces_.empty(); });
    awake_ = false;
    if (stops_) break;
  }
  const std::lock_guard lock(mutex_);
  for (Piece* piece : pieces_) {
    piece->error = std::make_exception_ptr(ApiError(503, "the server stops"));
    piece->done = true;
    piece->ended.notify_one();
  }
  pieces_.clear();
}

}  // namespace zoo
