#pragma once

#include <vector>

#include "models/generation/generate.h"

namespace zoo {

/// One beam found for a prompt.
struct FoundBeam {
  TokenIds ids;
  std::vector<double> log_probabilities;  // of each token, if asked for
  double score = 0;                       // sum of the filtered ones, divided according to length_penalty
};

/// A hypothesis that may become a result.
struct Beam {
  FoundBeam found;         // while it runs, its score is the sum
  std::int64_t row = 0;    // prompt row whose tokens it continues
  std::int64_t state = 0;  // state of the constraint
  bool ends = false;
};

/// Beams of one prompt, or of one of its groups, as in Hugging Face's `generate`: there are more candidates
/// than beams; those that end compete with the finished ones, and the best of the others continue. Groups
/// follow the last release of Hugging Face that had them, 4.49: a beam that ends still counts among those
/// that could improve, and at the last step the running beams compete unless their group is done.
class BeamGroup {
 public:
  BeamGroup(std::int64_t beams, const BeamOptions& options) : beams_(beams), options_(options) {
    running_.resize(static_cast<std::size_t>(beams));
    // All beams hold the prompt, so that only the first one is continued at first.
    for (std::size_t b = 1; b < running_.size(); ++b) running_[b].found.score = kHopeless;
  }

  const std::vector<Beam>& running() const { return running_; }

  /// Continues the running beams with `candidates`, in order of choice; each has `length` of `max_length` new
  /// tokens.
  void advance(std::vector<Beam> candidates, std::int64_t length, std::int64_t max_length);

  /// Keeps a finished group in the rows from `first` on, while other groups continue.
  void stay(std::int64_t first);

  bool done() const { return done_; }

  /// Finished beams, best first.
  std::vector<FoundBeam> finished() const { return finished_; }

 private:
  static constexpr double kHopeless = -1e9;  // score of a beam that cannot win

  void finish(const std::vector<Beam>& candidates, std::int64_t length);
  void finish(FoundBeam found, std::int64_t length);
  void keep_best();
  // `score`: the best sum of a candidate.
  bool can_improve(double score, std::int64_t length, std::int64_t max_length) const;
  bool is_one_of_several() const { return options_.num_beam_groups > 1; }
  bool full() const { return static_cast<std::int64_t>(finished_.size()) == beams_; }

  std::int64_t beams_;
  BeamOptions options_;
  std::vector<Beam> running_;
  std::vector<FoundBeam> finished_;
  bool done_ = false;
};

}  // namespace zoo
