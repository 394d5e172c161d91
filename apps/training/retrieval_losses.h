#pragma once

/// @file
/// Use:
///
///     const zoo::EmbeddingLossOptions options{.matryoshka_dims = {384, 128}};
///     const at::Tensor loss = zoo::embedding_loss(options, {.anchors = questions, .documents = answers});

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace zoo {

/// Losses of vectors whose cosines tell how alike their texts are.
enum class EmbeddingLoss {
  /// The cross-entropy of each anchor's positive among all documents of the batch (Henderson et al., 2017,
  /// "Efficient natural language response suggestion for Smart Reply"; van den Oord et al., 2018, InfoNCE).
  kMultipleNegativesRanking,
  /// Pairs with a lower score get a lower cosine: log(1 + sum of exp(scale (c_i - c_j))) over all i, j with
  /// score_i < score_j (Su, 2022, CoSENT).
  kCosent,
  /// The mean square of cosine - score (Reimers and Gurevych, 2019, section 3).
  kCosine,
  /// Texts of one label are nearer to one another than to others by a margin: the mean of max(0, d(a, p) -
  /// d(a, n) + margin) over all triplets of a batch where it is above 0, with Euclidean distances (Schroff et
  /// al., 2015, FaceNet; Hermans et al., 2017, "batch all").
  kBatchAllTriplet,
};

/// In the order of EmbeddingLoss.
inline const std::vector<std::string> kEmbeddingLossNames{"multiple_negatives_ranking", "cosent", "cosine",
                                                          "batch_all_triplet"};
/// True for a loss of pairs with a score.
inline bool takes_scores(EmbeddingLoss loss) {
  return loss == EmbeddingLoss::kCosent || loss == EmbeddingLoss::kCosine;
}

struct EmbeddingLossOptions {
  EmbeddingLoss loss = EmbeddingLoss::kMultipleNegativesRanking;
  double scale = 20;       // of the cosines, the inverse of a temperature: of the first two losses
  double margin = 5;       // of kBatchAllTriplet
  bool symmetric = false;  // of kMultipleNegativesRanking: also each positive's anchor; the mean of both
  /// Sizes to which the vectors are cut; the loss is the sum over them (Kusupati et al., 2022, Matryoshka
  /// representation learning). Empty: the whole vectors alone.
  std::vector<std::int64_t> matryoshka_dims;
};

/// The vectors of a batch, of any length.
struct EmbeddedBatch {
  at::Tensor anchors;  // [B, D]
  at::Tensor
      documents;      // [M, D]: the positive of each anchor, then negatives; with scores M = B; or undefined
  at::Tensor scores;  // [B] of pairs with a score; of kBatchAllTriplet the numbers of the labels
};

/// The loss [] of a batch. Throws c10::Error for a dimension above D.
at::Tensor embedding_loss(const EmbeddingLossOptions& options, const EmbeddedBatch& batch);

/// Losses of a cross-encoder, whose logit tells how well a document answers a query.
enum class RankingLoss {
  kBinaryCrossEntropy,  ///< of sigmoid(logit) and a label from 0 to 1 (Nogueira and Cho, 2019)
  kMse,                 ///< the mean of (logit - label)^2
  /// The cross-entropy of a query's relevant document, label 1, among all of its documents (Cao et al., 2007,
  /// ListNet, with the top one of one relevant document).
  kListwiseSoftmax,
  /// A bound of 1 - nDCG of a query's documents by their labels (Wang et al., 2018, "The LambdaLoss framework
  /// for ranking metric optimization", NDCG-Loss2++ with mu = 10): the mean over pairs with different labels.
  kLambda,
};

/// In the order of RankingLoss.
inline const std::vector<std::string> kRankingLossNames{"binary_cross_entropy", "mse", "listwise_softmax",
                                                        "lambda"};
/// True for a loss of all documents of a query.
inline bool takes_lists(RankingLoss loss) { return loss >= RankingLoss::kListwiseSoftmax; }

/// The mean loss [] of logits [N] and labels [N]; `lists` are the numbers of documents of each query, in
/// order. Pairs count alike, with kListwiseSoftmax queries do; its lists have their relevant document first.
at::Tensor ranking_loss(RankingLoss loss, const at::Tensor& logits, const at::Tensor& labels,
                        const std::vector<std::int64_t>& lists);

}  // namespace zoo
