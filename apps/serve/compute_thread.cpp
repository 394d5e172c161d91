#include "apps/serve/compute_thread.h"

#include <exception>

#include "apps/serve/api_error.h"

namespace zoo {

struct ComputeThread::Job {
  const std::function<void()>& work;
  std::exception_ptr error;
  bool done = false;
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
  {
    const std::lock_guard lock(mutex_);
    awake_ = true;
  }
  changed_.notify_all();
}

std::size_t ComputeThread::waiting_jobs() const {
  const std::lock_guard lock(mutex_);
  return jobs_.size();
}

void ComputeThread::run(const std::function<void()>& work) {
  Job job{work, nullptr};
  std::unique_lock lock(mutex_);
  if (stops_) throw ApiError(503, "the server stops");
  if (jobs_.size() >= most_jobs_)
    throw ApiError(429, "too many requests wait; try again later", "", "queue_full");
  jobs_.push_back(&job);
  changed_.notify_all();
  changed_.wait(lock, [&] { return job.done; });
  if (job.error) std::rethrow_exception(job.error);
}

bool ComputeThread::do_job() {
  Job* job = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (jobs_.empty()) return false;
    job = jobs_.front();
    jobs_.pop_front();
  }
  std::exception_ptr error;
  try {
    job->work();
  } catch (...) {
    error = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    job->error = error;
    job->done = true;
  }
  changed_.notify_all();
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
    busy = do_job() || busy;
    std::unique_lock lock(mutex_);
    if (!busy) changed_.wait(lock, [&] { return awake_ || stops_ || !jobs_.empty(); });
    awake_ = false;
    if (stops_) break;
  }
  const std::lock_guard lock(mutex_);
  for (Job* job : jobs_) {
    job->error = std::make_exception_ptr(ApiError(503, "the server stops"));
    job->done = true;
  }
  jobs_.clear();
  changed_.notify_all();
}

}  // namespace zoo
