#pragma once

/// @file
/// Use:
///
///     const auto embedders = zoo::load_search_embedders("all-MiniLM-L6-v2");
///     const auto mined = zoo::hard_negatives(embedders, anchors, positives, {.count = 3});
///     for (const std::size_t pair : mined[0]) std::cout << positives[pair] << "\n";

#include "models/tasks/search/rank.h"

namespace zoo {

struct HardNegativeOptions {
  std::int64_t count = 3;    // for each anchor, at most
  std::int64_t skipped = 0;  // the most similar that are left out: they may be answers that nobody has marked
  /// A negative's similarity is at most that of the positive minus this, and minus this share of its size.
  std::optional<double> absolute_margin, relative_margin;
  std::int64_t batch_size = 32;
};

/// For each pair of an anchor and its positive, the pairs whose positives the model finds most similar to the
/// anchor, the most similar first, as Sentence-Transformers' mine_hard_negatives() finds them. Equal texts
/// count once. No negative is a positive of an equal anchor; the least similar of these positives decides the
/// margins. There may be fewer than options.count. `run` embeds the batches.
/// Throws FieldError for a count below 1, a negative `skipped` or margin, and a batch_size below 1.
std::vector<std::vector<std::size_t>> hard_negatives(const SearchEmbedders& embedders,
                                                     const std::vector<std::string>& anchors,
                                                     const std::vector<std::string>& positives,
                                                     const HardNegativeOptions& options,
                                                     const RunPass& run = run_at_once);

}  // namespace zoo
