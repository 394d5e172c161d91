#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace zoo {

/// The MPI operations that c10d's Reducer needs: sums and broadcasts of contiguous tensors, in the order of
/// the calls, on a separate thread. The caller's thread must not use MPI during an operation.
class MpiBackend : public c10d::Backend {
 public:
  MpiBackend(int rank, int size);
  ~MpiBackend() override;

  const std::string getBackendName() const override { return "mpi"; }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override;
  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors,
                                           const c10d::BroadcastOptions& options) override;

 private:
  c10::intrusive_ptr<c10d::Work> enqueue(const std::vector<at::Tensor>& tensors, std::function<void()> task);
  void serve();

  std::mutex mutex_;
  std::condition_variable wakes_;
  std::deque<std::function<void()>> tasks_;
  bool ends_ = false;
  std::thread thread_;  // last: it uses the other members
};

}  // namespace zoo
