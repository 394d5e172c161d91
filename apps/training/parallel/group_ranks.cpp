#include <chrono>
#include <exception>

#include <ATen/ops/from_blob.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/util/Exception.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

#include "apps/training/parallel/data_parallel.h"

namespace zoo {
namespace {

// Gradients are summed in buckets of this size: the last bucket waits for the end of the backward pass.
constexpr std::int64_t kBucketBytes = 4 << 20, kFirstBucketBytes = 1 << 20;

// Drops the reducer's advice to skip the search for unused parameters, which depend on the batch.
class NoAdvice final : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

// Averages a bucket of gradients in bfloat16, like PyTorch's bf16_compress_hook.
class Bfloat16Mean final : public c10d::CppCommHookInterface<c10::intrusive_ptr<c10d::ProcessGroup>> {
 public:
  using CppCommHookInterface::CppCommHookInterface;

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    const at::Tensor gradients = bucket.getBuffer();
    std::vector<at::Tensor> rounded{gradients.to(at::kBFloat16).div_(state_->getSize())};
    const auto sum = state_->allreduce(rounded)->getFuture();
    return sum->then(
        [gradients, rounded](c10::ivalue::Future& done) {
          done.value();  // throws what the operation has thrown
          return c10::IValue(gradients.copy_(rounded[0]));
        },
        c10::TensorType::get());
  }
};

// Knows how long the end of a backward pass waits for other ranks.
class TimedReducer final : public c10d::Reducer {
 public:
  using Reducer::Reducer;

  // In seconds, of the last backward pass.
  double wait() const {
    using Event = c10d::Timer::Event;
    const auto nanoseconds = timer_->measureDifference(Event::kBackwardComputeEnd, Event::kBackwardCommEnd);
    return 1e-9 * static_cast<double>(nanoseconds.value_or(0));
  }
};

class GroupRanks final : public Ranks {
 public:
  GroupRanks(torch::nn::Module& module, c10::intrusive_ptr<c10d::ProcessGroup> group, RankWatch& watch,
             GradientWire wire)
      : group_(std::move(group)), watch_(watch), wire_(wire) {
    for (at::Tensor& parameter : module.parameters())
      if (parameter.requires_grad()) trained_.push_back(parameter);
  }

  ~GroupRanks() override {
    if (std::uncaught_exceptions() == 0) {
      watch_.wait_for_all();
      return;
    }
    // Their destructors would wait for operations that the other ranks may never join.
    new std::shared_ptr<TimedReducer>(reducer_);
    static_cast<void>(group_.release());
  }
  GroupRanks(const GroupRanks&) = delete;
  GroupRanks& operator=(const GroupRanks&) = delete;

  std::int64_t rank() const override { return group_->getRank(); }
  std::int64_t size() const override { return group_->getSize(); }

  void add(const at::Tensor& tensor) override {
    std::vector<at::Tensor> one{tensor};
    group_->allreduce(one)->wait();
  }

  void average(const std::vector<at::Tensor>& tensors) override {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<at::Tensor> sums = tensors;
    if (wire_ == GradientWire::kBfloat16)
      for (at::Tensor& sum : sums) sum = sum.to(at::kBFloat16);
    group_->allreduce_coalesced(sums)->wait();
    for (std::size_t i = 0; i < tensors.size(); ++i)
      tensors[i].copy_(sums[i]).div_(static_cast<double>(size()));
    waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  bool any_before(bool value) override {
    if (asked_ != nullptr) asked_->wait();
    const bool any = asked_ != nullptr && answer_[0].item<float>() > 0;
    answer_ = {at::scalar_tensor(value ? 1 : 0, at::kFloat)};
    asked_ = group_->allreduce(answer_);
    return any;
  }

  void broadcast(const at::Tensor& tensor, std::int64_t from) override {
    c10d::BroadcastOptions options;
    options.rootRank = from;
    std::vector<at::Tensor> one{tensor};
    group_->broadcast(one, options)->wait();
  }

  std::function<void()> begin_sum(const at::Tensor& tensor, std::int64_t to) override {
    c10d::ReduceOptions options;
    options.rootRank = to;
    std::vector<at::Tensor> sum{wire_ == GradientWire::kBfloat16 ? tensor.to(at::kBFloat16) : tensor};
    const auto work = group_->reduce(sum, options);
    return [this, tensor, sum, work] {
      const auto begin = std::chrono::steady_clock::now();
      work->wait();
      if (wire_ == GradientWire::kBfloat16) tensor.copy_(sum[0]);
      waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
  }

  void prepare_backward(const at::Tensor& loss, bool last) override {
    if (!last) return;
    count_wait();
    has_passed_ = true;
    if (reducer_ == nullptr) make_reducer();
    reducer_->prepare_for_forward();  // counts passes, of which it times each
    NoAdvice handler;
    const c10::WarningUtils::WarningHandlerGuard guard(&handler);
    reducer_->prepare_for_backward({loss});
  }

  std::vector<double> take_waits() override {
    count_wait();
    std::vector<double> waits(static_cast<std::size_t>(size()));
    waits[static_cast<std::size_t>(rank())] = std::exchange(waited_, 0);
    add(at::from_blob(waits.data(), {size()}, at::kDouble));
    return waits;
  }

 private:
  // Its buckets need as much memory as the gradients, which local steps do not average.
  void make_reducer() {
    const auto [buckets, limits] = c10d::compute_bucket_assignment_by_size(
        trained_, {static_cast<std::size_t>(kFirstBucketBytes), static_cast<std::size_t>(kBucketBytes)});
    // Backward passes produce gradients from the last layer to the first.
    reducer_ = std::make_shared<TimedReducer>(
        trained_, std::vector<std::vector<std::size_t>>(buckets.rbegin(), buckets.rend()), group_,
        std::vector<bool>(trained_.size(), false), kBucketBytes, /*find_unused_parameters=*/true,
        /*gradient_as_bucket_view=*/false, std::unordered_map<std::size_t, std::string>(), kFirstBucketBytes,
        /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false, std::vector<std::int64_t>());
    reducer_->set_ddp_runtime_logging_sample_rate(1);
    // Without one it crashes where the parameters of a loss change, as with LayerDrop.
    logger_ = std::make_shared<c10d::Logger>(reducer_);
    reducer_->set_logger(logger_);
    if (wire_ == GradientWire::kBfloat16)
      reducer_->register_comm_hook(std::make_unique<Bfloat16Mean>(group_));
  }

  void count_wait() {
    if (std::exchange(has_passed_, false)) waited_ += reducer_->wait();
  }

  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  RankWatch& watch_;
  GradientWire wire_;
  std::vector<at::Tensor> trained_;
  std::shared_ptr<TimedReducer> reducer_;
  std::shared_ptr<c10d::Logger> logger_;
  c10::intrusive_ptr<c10d::Work> asked_;  // of any_before()
  std::vector<at::Tensor> answer_;
  bool has_passed_ = false;  // a backward pass whose wait is not counted yet
  double waited_ = 0;
};

}  // namespace

std::unique_ptr<Ranks> make_group_ranks(torch::nn::Module& module,
                                        c10::intrusive_ptr<c10d::ProcessGroup> group, RankWatch& watch,
                                        GradientWire wire) {
  return std::make_unique<GroupRanks>(module, std::move(group), watch, wire);
}

}  // namespace zoo
