#include "apps/training/parallel/mpi_backend.h"

#include <ATen/core/ivalue.h>
#include <mpi.h>

#include "apps/training/parallel/ring_sum.h"

namespace zoo {
namespace {

MPI_Datatype type_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return MPI_FLOAT;
    case at::kDouble:
      return MPI_DOUBLE;
    case at::kLong:
      return MPI_INT64_T;
    case at::kInt:
      return MPI_INT32_T;
    case at::kByte:
    case at::kBool:
      return MPI_UINT8_T;
    default:
      TORCH_CHECK(false, "MPI has no type for ", tensor.scalar_type());
  }
}

class MpiWork : public c10d::Work {
 public:
  MpiWork(int rank, const std::vector<at::Tensor>& tensors)
      : c10d::Work(rank),
        future_(c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()))),
        tensors_(tensors) {}

  bool isCompleted() override { return future_->completed(); }
  bool isSuccess() const override { return future_->completed() && !future_->hasError(); }
  bool wait(std::chrono::milliseconds) override {
    future_->waitAndThrow();
    return true;
  }
  std::vector<at::Tensor> result() override { return tensors_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

 private:
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  std::vector<at::Tensor> tensors_;
};

}  // namespace

MpiBackend::MpiBackend(int rank, int size) : c10d::Backend(rank, size), thread_([this] { serve(); }) {}

MpiBackend::~MpiBackend() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  wakes_.notify_one();
  thread_.join();
}

void MpiBackend::serve() {
  for (;;) {
    std::function<void()> task;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      wakes_.wait(lock, [this] { return ends_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

c10::intrusive_ptr<c10d::Work> MpiBackend::enqueue(const std::vector<at::Tensor>& tensors,
                                                   std::function<void()> task) {
  auto work = c10::make_intrusive<MpiWork>(getRank(), tensors);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    // By default MPI's own errors end this process and all others.
    tasks_.push_back([tensors, future = work->getFuture(), task = std::move(task)] {
      task();
      future->markCompleted(c10::IValue(tensors));
    });
  }
  wakes_.notify_one();
  return work;
}

c10::intrusive_ptr<c10d::Work> MpiBackend::allreduce(std::vector<at::Tensor>& tensors,
                                                     const c10d::AllreduceOptions& options) {
  TORCH_CHECK(options.reduceOp == c10d::ReduceOp::SUM, "only sums are reduced over the ranks");
  for (const at::Tensor& tensor : tensors) TORCH_CHECK(tensor.is_contiguous() && tensor.is_cpu());
  return enqueue(tensors, [tensors] {
    for (const at::Tensor& tensor : tensors) {
      if (tensor.scalar_type() == at::kFloat) {
        ring_sum(tensor.mutable_data_ptr<float>(), static_cast<std::size_t>(tensor.numel()));
      } else {
        MPI_Allreduce(MPI_IN_PLACE, tensor.data_ptr(), static_cast<int>(tensor.numel()), type_of(tensor),
                      MPI_SUM, MPI_COMM_WORLD);
      }
    }
  });
}

c10::intrusive_ptr<c10d::Work> MpiBackend::broadcast(std::vector<at::Tensor>& tensors,
                                                     const c10d::BroadcastOptions& options) {
  for (const at::Tensor& tensor : tensors) TORCH_CHECK(tensor.is_contiguous() && tensor.is_cpu());
  return enqueue(tensors, [tensors, root = static_cast<int>(options.rootRank)] {
    for (const at::Tensor& tensor : tensors)
      MPI_Bcast(tensor.data_ptr(), static_cast<int>(tensor.numel()), type_of(tensor), root, MPI_COMM_WORLD);
  });
}

}  // namespace zoo
