#pragma once

/// @file
/// Use:
///
///     const std::vector<double> gains{0, 1};  // the second of the ranked documents is the relevant one
///     std::cout << zoo::ranking_figures(gains).ndcg << "\n";  // 0.63

#include <span>
#include <vector>

#include "apps/training/records/metrics_log.h"

namespace zoo {

/// How well one query's documents are ranked.
struct RankingFigures {
  double accuracy = 0;  // 1 if the first document is relevant
  double mrr = 0;       // MRR@10: 1 / rank of the first relevant document, 0 below rank 10
  /// nDCG@10, with gain / log2(1 + rank) (Jarvelin and Kekalainen, 2002); 0 without relevant ones
  double ndcg = 0;
  double recall = 0;  // recall@10: the share of the relevant documents that are among the first 10
};

/// Figures of the gains of all documents in the order of their ranks; 0: not relevant.
RankingFigures ranking_figures(std::span<const double> gains);
/// Their means over the gains of several queries: "accuracy", "mrr_at_10", "ndcg_at_10" and "recall_at_10".
std::vector<Score> mean_figures(std::span<const std::vector<double>> queries);

/// Spearman's correlation of two lists of equal length: Pearson's of the ranks, equal values sharing their
/// mean rank. 0 if one list is constant.
double spearman(std::span<const double> x, std::span<const double> y);

}  // namespace zoo
