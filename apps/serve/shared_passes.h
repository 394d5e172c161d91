#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "apps/serve/compute_thread.h"
#include "models/tasks/text_pass.h"

namespace zoo {

/// Passes over the texts of all requests: a request's pass takes waiting texts of others along, so that many
/// clients with one text each are answered as fast as one with many. It has no more texts than are efficient:
/// a short request does not wait for all of a large one.
class SharedPasses {
 public:
  /// As run_at_once(pass, texts); each pass is a piece of `job`. Throws what the pass or the job throws.
  std::vector<at::Tensor> run(ComputeJob& job, const TextPass& pass, const std::vector<Encoding>& texts);

  /// Passes since the beginning.
  std::int64_t count() const { return count_; }

 private:
  struct Request;

  void pass_of(const std::shared_ptr<Request>& request);
  bool is_done(const Request& request) const;

  mutable std::mutex mutex_;
  std::deque<std::shared_ptr<Request>> waiting_;
  std::atomic<std::int64_t> count_ = 0;
};

}  // namespace zoo
