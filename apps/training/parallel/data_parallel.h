#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <torch/nn/module.h>

#include "apps/training/parallel/launchers.h"
#include "apps/training/parallel/rank_watch.h"
#include "apps/training/parallel/ranks.h"

namespace c10d {
class ProcessGroup;
}

namespace zoo {

/// Number format in which gradients travel: rounding to bfloat16 halves the bytes.
enum class GradientWire { kFloat32, kBfloat16 };

/// In the order of GradientWire.
inline const std::vector<std::string> kGradientWireNames{"float32", "bfloat16"};

struct SessionOptions {
  MeetingPlace place;
  /// Seconds: all ranks must arrive in that time, and a rank that gives no sign of life for so long is dead.
  std::int64_t rank_timeout = 60;
  GradientWire gradient_wire = GradientWire::kFloat32;
};

/// The processes that a launcher has started to train together (launchers.h). They meet in c10d's TCPStore;
/// c10d's Gloo or, on GPUs, NCCL connects them. One per process, before all that takes time or can fail.
class ParallelSession {
 public:
  /// Waits for all ranks. Throws Error if the launcher's variables disagree, or a rank does not arrive.
  explicit ParallelSession(const SessionOptions& options = {});
  ~ParallelSession();

  std::int64_t rank() const { return launch_.rank; }
  std::int64_t size() const { return launch_.size; }
  std::int64_t local_rank() const { return launch_.local_rank; }
  /// "2 ranks, started by torchrun"; empty without a launcher.
  std::string description() const;

  /// Calls `body`. Its exception also ends the other ranks, as `end_of` says, after the name of this rank; if
  /// another rank has died, this process ends with that rank's name.
  int run(const std::function<int()>& body,
          const std::function<RankEnd(const std::exception&)>& end_of) const;

  /// What must be equal on all ranks: a name, such as "batch_size", and its value.
  using Facts = std::vector<std::pair<std::string, std::string>>;
  /// Ranks for training this module; null for a single process. c10d's Reducer averages gradients in buckets
  /// during the backward pass. Every rank ends with a message that names the rank and the difference if the
  /// facts, the weights, LibTorch or the kernels' instruction set differ from rank 0's.
  std::unique_ptr<Ranks> ranks_for(torch::nn::Module& module, const Facts& facts = {}) const;

 private:
  struct Group;

  Launch launch_;
  std::unique_ptr<Group> group_;  // null for a single process
};

/// The processes of a c10d group, of which ranks_for() makes ranks. `watch` must outlive them.
std::unique_ptr<Ranks> make_group_ranks(torch::nn::Module& module,
                                        c10::intrusive_ptr<c10d::ProcessGroup> group, RankWatch& watch,
                                        GradientWire wire);

}  // namespace zoo
