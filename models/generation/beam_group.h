#pragma once

#include "models/generation/beam_search.h"

namespace zoo {

/// A beginning that may become a result.
struct Beam {
  FoundBeam found;         // its score is the plain sum while it runs
  std::int64_t row = 0;    // of the prompt's rows, the one whose tokens it continues
  std::int64_t state = 0;  // of the constraint
  bool ends = false;
};

/// The beams of one prompt, or of one of its groups, in the search of Hugging Face's `generate`: of the
/// likeliest candidates, more than there are beams, those that have ended compete with the finished ones, and
/// the best that have not go on.
class BeamGroup {
 public:
  BeamGroup(std::int64_t beams, const BeamOptions& options) : beams_(beams), options_(options) {
    running_.resize(static_cast<std::size_t>(beams));
    // All of them are the prompt: one alone is to be continued at first.
    for (std::size_t b = 1; b < running_.size(); ++b) running_[b].found.score = kHopeless;
  }

  const std::vector<Beam>& running() const { return running_; }

  /// `candidates`, best first, are what the running beams may become; all of them have `length` new tokens,
  /// of `max_length`.
  void advance(std::vector<Beam> candidates, std::int64_t length, std::int64_t max_length);

  /// A group that is done stays in the rows that begin with `first`, while others go on.
  void stay(std::int64_t first);

  bool done() const { return done_; }

  /// What has finished, the best first.
  std::vector<FoundBeam> finished() const { return finished_; }

 private:
  static constexpr double kHopeless = -1e9;  // of a beam that nothing can come of

  void finish(const std::vector<Beam>& candidates, std::int64_t length);
  bool can_improve(std::int64_t length, std::int64_t max_length) const;
  bool full() const { return static_cast<std::int64_t>(finished_.size()) == beams_; }

  std::int64_t beams_;
  BeamOptions options_;
  std::vector<Beam> running_;
  std::vector<FoundBeam> finished_;
  bool done_ = false;
};

}  // namespace zoo
