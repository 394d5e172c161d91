#include "models/generation/graphs/graphed_steps.h"

#include <algorithm>
#include <bit>

namespace zoo {
namespace {

// Recording costs about as much as this many steps.
constexpr std::int64_t kStepsBefore = 4;
// Each recorded step reads all positions that it may see, so it sees few at first.
constexpr std::int64_t kFirstSeen = 256;

}  // namespace

GraphedSteps::GraphedSteps(Model& model, KeyValueCache& cache)
    : model_(model),
      cache_(cache),
      possible_(DeviceGraph::available(cache.device()) && FixedStep::supports(model.config(), kFirstSeen)) {}

bool GraphedSteps::is_ready(const std::vector<std::int64_t>& begins) {
  if (begins != begins_ || moves_ != cache_.moves()) {
    graph_.reset();
    begins_ = begins;
    moves_ = cache_.moves();
    calm_ = 0;
  }
  return ++calm_ > kStepsBefore;
}

// False if the device or a library refuses: the usual way gives the same logits.
bool GraphedSteps::record() {
  try {
    graph_ = std::make_unique<DeviceGraph>(cache_.device(), [this] { step_->run(); });
  } catch (const c10::Error&) {
    possible_ = false;
  }
  return possible_;
}

at::Tensor GraphedSteps::step(const TokenIds& ids, const std::vector<std::int64_t>& begins) {
  if (!possible_ || !is_ready(begins)) return {};
  const std::int64_t position = cache_.length();
  const bool records = !graph_ || position >= seen_;
  if (records) {
    graph_.reset();
    seen_ = std::min(cache_.capacity(), std::max(kFirstSeen, static_cast<std::int64_t>(std::bit_ceil(
                                                                 static_cast<std::uint64_t>(position) + 1))));
    possible_ = FixedStep::supports(model_.config(), seen_);
    if (!possible_) return {};
    step_.emplace(model_, cache_, begins, seen_);
  }
  step_->set(ids, position);
  if (records && !record()) return {};
  graph_->replay();
  cache_.advance(1);
  return step_->logits();
}

}  // namespace zoo
