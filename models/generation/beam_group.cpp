#include "models/generation/beam_group.h"

#include <algorithm>
#include <cmath>

namespace zoo {
namespace {

// In float32, like Hugging Face: rounding decides between close scores.
float penalized(double score, std::int64_t length, double penalty) {
  return static_cast<float>(score) / static_cast<float>(std::pow(static_cast<double>(length), penalty));
}

}  // namespace

void BeamGroup::advance(std::vector<Beam> candidates, std::int64_t length, std::int64_t max_length) {
  finish(candidates, length);
  const bool all_end =
      std::all_of(candidates.begin(), candidates.end(), [](const Beam& beam) { return beam.ends; });
  std::stable_sort(candidates.begin(), candidates.end(), [](const Beam& a, const Beam& b) {
    return a.ends != b.ends ? b.ends : a.found.score > b.found.score;
  });
  candidates.resize(static_cast<std::size_t>(beams_), candidates.back());
  for (Beam& beam : candidates) {
    // Too few candidates go on.
    if (beam.ends) beam.found.score = kHopeless;
    beam.ends = false;
  }
  running_ = std::move(candidates);
  done_ = all_end || !std::isfinite(running_.front().found.score) || !can_improve(length, max_length) ||
          (options_.early_stopping == EarlyStopping::kFull && full());
}

void BeamGroup::stay(std::int64_t first) {
  for (Beam& beam : running_) beam.row = first++;
}

// Finishes those of the first `beams_` candidates that end, and keeps the best of all finished ones.
void BeamGroup::finish(const std::vector<Beam>& candidates, std::int64_t length) {
  const auto count = std::min(candidates.size(), static_cast<std::size_t>(beams_));
  for (std::size_t c = 0; c < count; ++c) {
    if (!candidates[c].ends || !(candidates[c].found.score > kHopeless / 2)) continue;
    FoundBeam found = candidates[c].found;
    found.score = penalized(found.score, length, options_.length_penalty);
    finished_.push_back(std::move(found));
  }
  std::stable_sort(finished_.begin(), finished_.end(),
                   [](const FoundBeam& a, const FoundBeam& b) { return a.score > b.score; });
  if (finished_.size() > static_cast<std::size_t>(beams_)) finished_.resize(static_cast<std::size_t>(beams_));
}

bool BeamGroup::can_improve(std::int64_t length, std::int64_t max_length) const {
  if (!full()) return true;
  const bool longest = options_.early_stopping == EarlyStopping::kNever && options_.length_penalty > 0;
  const float best =
      penalized(running_.front().found.score, longest ? max_length : length, options_.length_penalty);
  return best > static_cast<float>(finished_.back().score);
}

}  // namespace zoo
