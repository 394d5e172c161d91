#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "models/generation/continuous_batch.h"

namespace zoo {

/// The one thread that runs models: steps of the batches in turn, and between them one job at a time. Threads
/// that compute at once would only wait for one another's processors.
class ComputeThread {
 public:
  explicit ComputeThread(std::size_t most_jobs) : most_jobs_(most_jobs) {}
  ~ComputeThread() { stop(); }
  ComputeThread(const ComputeThread&) = delete;
  ComputeThread& operator=(const ComputeThread&) = delete;

  /// Before start(). The batch must outlive the thread.
  void add(ContinuousBatch& batch) { batches_.push_back(&batch); }
  /// `begin` runs first, on the thread.
  void start(std::function<void()> begin);
  /// Ends after the present step; jobs that wait fail.
  void stop();

  /// Call after submitting to a batch.
  void wake();

  /// Runs `job` and waits for it; throws what it throws, and ApiError 429 if too many jobs wait.
  void run(const std::function<void()>& job);

  std::size_t waiting_jobs() const;
  /// Steps of all batches since the beginning.
  std::int64_t steps() const { return steps_; }

 private:
  struct Job;

  void loop();
  bool do_job();

  std::vector<ContinuousBatch*> batches_;
  std::size_t most_jobs_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job*> jobs_;
  bool awake_ = false, stops_ = false;
  std::atomic<std::int64_t> steps_ = 0;
  std::thread thread_;
};

}  // namespace zoo
