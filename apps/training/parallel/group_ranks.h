#pragma once

#include <memory>

#include "apps/training/parallel/data_parallel.h"
#include "apps/training/parallel/rank_watch.h"

namespace c10d {
class ProcessGroup;
}

namespace zoo {

/// The processes of a c10d group that train this module. c10d's Reducer averages gradients in buckets during
/// the backward pass. `watch` must outlive them.
std::unique_ptr<Ranks> make_group_ranks(torch::nn::Module& module,
                                        c10::intrusive_ptr<c10d::ProcessGroup> group, RankWatch& watch,
                                        GradientWire wire);

}  // namespace zoo
