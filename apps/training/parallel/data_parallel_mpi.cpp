#include <cstdlib>
#include <exception>

#include <c10/util/Exception.h>
#include <mpi.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "apps/training/parallel/data_parallel.h"
#include "apps/training/parallel/launchers.h"
#include "apps/training/parallel/mpi_backend.h"
#include "data/base/error.h"

namespace zoo {
namespace {

// Gradients are summed in buckets of this size: the last bucket waits for the end of the backward pass.
constexpr std::int64_t kBucketBytes = 4 << 20, kFirstBucketBytes = 1 << 20;

// Drops the reducer's advice to skip the search for unused parameters, which depend on the batch.
class NoAdvice final : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

class MpiRanks final : public Ranks {
 public:
  MpiRanks(torch::nn::Module& module, std::int64_t rank, std::int64_t size) : rank_(rank), size_(size) {
    group_ = c10::make_intrusive<c10d::ProcessGroup>(static_cast<int>(rank), static_cast<int>(size));
    group_->setBackend(c10::kCPU, c10d::ProcessGroup::CUSTOM,
                       c10::make_intrusive<MpiBackend>(static_cast<int>(rank), static_cast<int>(size)));
    group_->setDefaultBackend(c10d::ProcessGroup::CUSTOM);
    std::vector<at::Tensor> trained;
    for (at::Tensor& parameter : module.parameters()) {
      broadcast(parameter.detach(), 0);
      if (parameter.requires_grad()) trained.push_back(parameter);
    }
    const auto [buckets, limits] = c10d::compute_bucket_assignment_by_size(
        trained, {static_cast<std::size_t>(kFirstBucketBytes), static_cast<std::size_t>(kBucketBytes)});
    // Backward passes produce gradients from the last layer to the first.
    reducer_ = std::make_unique<c10d::Reducer>(
        trained, std::vector<std::vector<std::size_t>>(buckets.rbegin(), buckets.rend()), group_,
        std::vector<bool>(trained.size(), false), kBucketBytes, /*find_unused_parameters=*/true,
        /*gradient_as_bucket_view=*/false, std::unordered_map<std::size_t, std::string>(), kFirstBucketBytes,
        /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false, std::vector<std::int64_t>());
  }

  std::int64_t rank() const override { return rank_; }
  std::int64_t size() const override { return size_; }

  double sum(double value) override {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return value;
  }

  void broadcast(const at::Tensor& tensor, std::int64_t from) override {
    c10d::BroadcastOptions options;
    options.rootRank = from;
    std::vector<at::Tensor> one{tensor};
    group_->broadcast(one, options)->wait();
  }

  void prepare_backward(const at::Tensor& loss, bool last) override {
    if (!last) return;
    NoAdvice handler;
    const c10::WarningUtils::WarningHandlerGuard guard(&handler);
    reducer_->prepare_for_backward({loss});
  }

 private:
  std::int64_t rank_, size_;
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  std::unique_ptr<c10d::Reducer> reducer_;
};

}  // namespace

ParallelSession::ParallelSession() {
  // Set by Open MPI and MPICH. A process that mpirun has not started does not need MPI.
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr && std::getenv("PMI_SIZE") == nullptr) {
    require_alone();
    return;
  }
  int granted = 0;
  // The backend's thread and this one call MPI, never at the same time.
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &granted);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  rank_ = rank;
  size_ = size;
  if (size > 1 && granted < MPI_THREAD_SERIALIZED) throw Error("this MPI serves one thread alone");
}

ParallelSession::~ParallelSession() {
  if (std::uncaught_exceptions() > 0 && size_ > 1) {
    // The other ranks wait for this rank in a sum. MPI_Abort ends them after the message has been printed.
    constexpr auto abort = [] { MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE); };
    std::atexit(abort);
    std::at_quick_exit(abort);
    return;
  }
  int is_initialized = 0;
  MPI_Initialized(&is_initialized);
  if (is_initialized != 0) MPI_Finalize();
}

std::unique_ptr<Ranks> ParallelSession::ranks_for(torch::nn::Module& module) const {
  if (size_ == 1) return nullptr;
  return std::make_unique<MpiRanks>(module, rank_, size_);
}

}  // namespace zoo
