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
  const double best = candidates.front().found.score;
  const bool all_end =
      std::all_of(candidates.begin(), candidates.end(), [](const Beam& beam) { return beam.ends; });
  std::stable_sort(candidates.begin(), candidates.end(), [](const Beam& a, const Beam& b) {
    return a.ends != b.ends ? b.ends : a.found.score > b.found.score;
  });
  candidates.resize(static_cast<std::size_t>(beams_), candidates.back());
  for (Beam& beam : candidates) {
    // Too few candidates continue.
    if (beam.ends) beam.found.score = kHopeless;
    beam.ends = false;
  }
  running_ = std::move(candidates);
  const double going = running_.front().found.score;
  done_ = all_end || !std::isfinite(going) ||
          !can_improve(is_one_of_several() ? best : going, length, max_length) ||
          (options_.early_stopping == EarlyStopping::kFull && full());
  if (!is_one_of_several() || done_ || length < max_length) return;
  for (const Beam& beam : running_) finish(beam.found, length);
  keep_best();
  done_ = true;
}

void BeamGroup::stay(std::int64_t first) {
  for (Beam& beam : running_) beam.row = first++;
}

// Finishes those of the first `beams_` candidates that end.
void BeamGroup::finish(const std::vector<Beam>& candidates, std::int64_t length) {
  const auto count = std::min(candidates.size(), static_cast<std::size_t>(beams_));
  for (std::size_t c = 0; c < count; ++c)
    if (candidates[c].ends) finish(candidates[c].found, length);
  keep_best();
}

void BeamGroup::finish(FoundBeam found, std::int64_t length) {
  if (!(found.score > kHopeless / 2)) return;
  found.score = penalized(found.score, length, options_.length_penalty);
  finished_.push_back(std::move(found));
}

void BeamGroup::keep_best() {
  std::stable_sort(finished_.begin(), finished_.end(),
                   [](const FoundBeam& a, const FoundBeam& b) { return a.score > b.score; });
  if (finished_.size() > static_cast<std::size_t>(beams_)) finished_.resize(static_cast<std::size_t>(beams_));
}

bool BeamGroup::can_improve(double score, std::int64_t length, std::int64_t max_length) const {
  if (!full()) return true;
  const bool longest = options_.early_stopping == EarlyStopping::kNever && options_.length_penalty > 0;
  const float best = penalized(score, longest ? max_length : length, options_.length_penalty);
  return best > static_cast<float>(finished_.back().score);
}

}  // namespace zoo
