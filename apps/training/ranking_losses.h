#pragma once

/// @file
/// Use:
///
///     const at::Tensor loss = zoo::ranking_loss(zoo::RankingLoss::kListwiseSoftmax, logits, labels, {4, 4,
///     3});

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace zoo {

/// Losses of a cross-encoder, whose logit tells how well a document answers a query.
enum class RankingLoss {
  kBinaryCrossEntropy,  ///< of sigmoid(logit) and a label from 0 to 1 (Nogueira and Cho, 2019)
  kMse,                 ///< the mean of (logit - label)^2
  /// The cross-entropy of a query's relevant document, label 1, among all of its documents (Cao et al., 2007,
  /// ListNet, with the top one of one relevant document).
  kListwiseSoftmax,
};

/// "binary_cross_entropy", "mse", "listwise_softmax", in the order of the enum.
const std::vector<std::string>& ranking_loss_names();

/// The mean loss [] of logits [N] and labels [N]; `lists` are the numbers of documents of each query, in
/// order. Pairs count alike, with kListwiseSoftmax queries do; its lists have their relevant document first.
at::Tensor ranking_loss(RankingLoss loss, const at::Tensor& logits, const at::Tensor& labels,
                        const std::vector<std::int64_t>& lists);

}  // namespace zoo
