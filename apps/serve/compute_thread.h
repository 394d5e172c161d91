#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "models/generation/continuous_batch.h"

namespace zoo {

/// Thrown where a request's work ends because its client has closed the connection.
struct ClientLeft {};

/// What ends a request before its answer: the client leaves, the server stops, the time is over.
struct RequestWatch {
  /// How often a wait calls check().
  static constexpr std::chrono::milliseconds kInterval{20};

  /// Throws ClientLeft, or ApiError 503.
  void check() const;
  /// Since the request began.
  double seconds() const;

  std::function<bool()> client_left;  // may be null
  const std::atomic<bool>& stopping;  // outlives the watch
  double most_seconds;
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
};

/// The one thread that runs models: steps of the batches in turn, and between them one piece of a job.
/// Threads that compute at once would only wait for one another's processors.
class ComputeThread {
 public:
  ~ComputeThread() { stop(); }

  /// Before start(): further jobs are refused.
  void set_most_jobs(std::size_t most) { most_jobs_ = most; }
  /// Before start(). The batch must outlive the thread.
  void add(ContinuousBatch& batch) { batches_.push_back(&batch); }
  /// `begin` runs first, on the thread.
  void start(std::function<void()> begin);
  /// Ends after the present step; pieces that wait fail.
  void stop();

  /// Call after submitting to a batch.
  void wake();

  std::size_t waiting_pieces() const;
  /// Steps of all batches since the beginning.
  std::int64_t steps() const { return steps_; }
  /// Pieces of jobs since the beginning.
  std::int64_t pieces() const { return done_; }

 private:
  friend class ComputeJob;
  struct Piece;

  void loop();
  bool do_piece();

  std::vector<ContinuousBatch*> batches_;
  std::size_t most_jobs_ = 64;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t jobs_ = 0;
  std::deque<Piece*> pieces_;
  bool awake_ = false, stops_ = false;
  std::atomic<std::int64_t> steps_ = 0, done_ = 0;
  std::thread thread_;
};

/// A request's work that no batch does, in pieces: each waits behind the pieces of other jobs, and the
/// batches make a step between two pieces, so that a long job holds up nobody.
class ComputeJob {
 public:
  /// Throws ApiError 429 if there are too many jobs.
  ComputeJob(ComputeThread& thread, RequestWatch watch);
  ~ComputeJob();
  ComputeJob(const ComputeJob&) = delete;
  ComputeJob& operator=(const ComputeJob&) = delete;

  /// Runs a piece on the thread and waits for it. Throws what it throws, and as RequestWatch::check() as long
  /// as it has not begun.
  void run(const std::function<void()>& work);

  const RequestWatch& watch() const { return watch_; }

 private:
  ComputeThread& thread_;
  RequestWatch watch_;
};

}  // namespace zoo
