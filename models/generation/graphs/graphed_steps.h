#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "models/layers/attention/key_value_cache.h"
#include "models/model.h"
#include "tokenizer/token_id.h"

namespace zoo {

/// A decoder's step of one token a row, whose kernels do not depend on how many tokens came before: it reads
/// `seen` positions of the cache, and a mask hides those after the token. So they can be recorded once.
class FixedStep {
 public:
  /// False for models whose step does depend on the number of tokens: biases by distance, windows shorter
  /// than `seen`, scaling by length, experts, attention that is not full, encoder-decoders.
  static bool supports(const TransformerConfig& config, std::int64_t seen);

  /// Row b's tokens lie in the cache from begins[b] to the cache's end. The model and the cache must outlive
  /// the step.
  FixedStep(Model& model, KeyValueCache& cache, const std::vector<std::int64_t>& begins, std::int64_t seen);

  /// The tokens [B] that run() reads, and their position in the cache, less than `seen`.
  void set(const TokenIds& ids, std::int64_t position);

  /// Computes logits() and writes keys and values: only kernels of the device, without copies from the host
  /// and without waiting. Running it again gives the same.
  void run();

  /// [B, V] float32, of the token after those that were set.
  const at::Tensor& logits() const { return logits_; }

 private:
  Model& model_;
  KeyValueCache& cache_;
  std::int64_t seen_;
  at::Tensor ids_, begins_;        // [B, 1]
  at::Tensor position_, indices_;  // [1] and [seen]
  at::Tensor logits_;
};

/// A session's steps of one token a row on a GPU: after a few of the same rows, their kernels are recorded.
class GraphedSteps {
 public:
  GraphedSteps(Model& model, KeyValueCache& cache);

  /// False on a CPU, and for models whose step cannot be recorded.
  bool possible() const { return possible_; }

  /// Reads ids[b] after the cache's end for row b, which begins at begins[b], and advances the cache. Returns
  /// logits [B, V] float32, valid until the next call, or an undefined tensor if nothing was done, as in the
  /// first steps of changed rows.
  at::Tensor step(const TokenIds& ids, const std::vector<std::int64_t>& begins);

 private:
  Model& model_;
  KeyValueCache& cache_;
  bool possible_;
  // What the recorded addresses and sizes belong to.
  std::vector<std::int64_t> begins_;
  std::int64_t moves_ = -1, seen_ = 0, calm_ = 0;  // calm_: steps since the rows changed
  std::optional<FixedStep> step_;
  std::function<void()> launch_;  // the recorded step
};

}  // namespace zoo
