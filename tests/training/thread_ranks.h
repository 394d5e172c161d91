#pragma once

#include <barrier>
#include <exception>
#include <thread>
#include <vector>

#include "apps/training/parallel/ranks.h"
#include "data/base/error.h"

namespace zoo::test {

/// Ranks that are threads of this process and do not average gradients.
class ThreadRanks final : public Ranks {
 public:
  /// What the threads share.
  struct Group {
    explicit Group(std::int64_t size) : meeting(size), tensors(static_cast<std::size_t>(size)) {}
    std::barrier<> meeting;
    std::vector<std::vector<at::Tensor>> tensors;  // by rank
  };

  ThreadRanks(Group& group, std::int64_t rank) : group_(group), rank_(rank) {}

  std::int64_t rank() const override { return rank_; }
  std::int64_t size() const override { return static_cast<std::int64_t>(group_.tensors.size()); }

  void add(const at::Tensor& tensor) override {
    average({tensor});
    at::Tensor(tensor).mul_(size());
  }
  void average(const std::vector<at::Tensor>& tensors) override {
    exchange(tensors, [&](std::size_t i) {
      at::Tensor sum = at::zeros_like(tensors[i]);
      for (const auto& of_rank : group_.tensors) sum += of_rank[i];
      return sum.div_(size());
    });
  }
  void broadcast(const at::Tensor& tensor, std::int64_t from) override {
    exchange({tensor},
             [&](std::size_t i) { return group_.tensors[static_cast<std::size_t>(from)][i].clone(); });
  }
  std::function<void()> begin_sum(const at::Tensor& tensor, std::int64_t) override {
    if (on_sum) on_sum();
    add(tensor);
    return [] {};
  }
  bool any_before(bool value) override { return std::exchange(any_, sum(value ? 1 : 0) > 0); }
  void prepare_backward(const at::Tensor&, bool) override { throw Error("no gradients are averaged here"); }
  std::vector<double> take_waits() override { return {}; }

  std::function<void()> on_sum;

 private:
  template <class Combine> void exchange(const std::vector<at::Tensor>& own, const Combine& combine) {
    group_.tensors[static_cast<std::size_t>(rank_)] = own;
    group_.meeting.arrive_and_wait();
    std::vector<at::Tensor> results;
    for (std::size_t i = 0; i < own.size(); ++i) results.push_back(combine(i));
    group_.meeting.arrive_and_wait();  // all have read
    for (std::size_t i = 0; i < own.size(); ++i) at::Tensor(own[i]).copy_(results[i]);
  }

  Group& group_;
  std::int64_t rank_;
  bool any_ = false;
};

/// Calls body(ranks) in a thread for each rank; throws what the first of them has thrown.
template <class Body> void run_ranks(std::int64_t size, const Body& body) {
  ThreadRanks::Group group(size);
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (std::int64_t rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      ThreadRanks ranks(group, rank);
      try {
        body(ranks);
      } catch (...) {
        failures[static_cast<std::size_t>(rank)] = std::current_exception();
        group.meeting.arrive_and_drop();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace zoo::test
