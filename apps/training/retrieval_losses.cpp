#include "apps/training/retrieval_losses.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "models/tasks/sentence_modules.h"

namespace zoo {

namespace {

at::Tensor cosines(const EmbeddedBatch& batch) {
  return (unit_vectors(batch.anchors) * unit_vectors(batch.documents)).sum(-1);
}

at::Tensor negatives_loss(const EmbeddingLossOptions& options, const EmbeddedBatch& batch) {
  const std::int64_t anchors = batch.anchors.size(0);
  const at::Tensor scores =
      options.scale * at::matmul(unit_vectors(batch.anchors), unit_vectors(batch.documents).t());  // [B, M]
  const at::Tensor own = at::arange(anchors, scores.options().dtype(at::kLong));
  const at::Tensor loss = at::cross_entropy_loss(scores, own);
  if (!options.symmetric) return loss;
  return (loss + at::cross_entropy_loss(scores.slice(1, 0, anchors).t(), own)) / 2;
}

at::Tensor cosent_loss(const EmbeddingLossOptions& options, const EmbeddedBatch& batch) {
  const at::Tensor scores = options.scale * cosines(batch);
  const at::Tensor above = scores.unsqueeze(1) - scores.unsqueeze(0);  // [B, B]
  const at::Tensor ordered = batch.scores.unsqueeze(1).lt(batch.scores.unsqueeze(0));
  const at::Tensor wrong = above.masked_fill(ordered.logical_not(), -1e12).flatten();
  return at::logsumexp(at::cat({at::zeros({1}, wrong.options()), wrong}), 0);
}

at::Tensor triplet_loss(const EmbeddingLossOptions& options, const EmbeddedBatch& batch) {
  constexpr double kNone = 1e-16;  // the gradient of a distance of 0 would not be finite
  const at::Tensor& x = batch.anchors;
  const at::Tensor distances =
      (x.unsqueeze(1) - x.unsqueeze(0)).square().sum(-1).clamp_min(kNone).sqrt();  // [B, B]
  const at::Tensor same = batch.scores.unsqueeze(1).eq(batch.scores.unsqueeze(0));
  const at::Tensor itself = at::eye(x.size(0), same.options());
  const at::Tensor valid =
      same.logical_and(itself.logical_not()).unsqueeze(2).logical_and(same.logical_not().unsqueeze(1));
  const at::Tensor losses =
      (distances.unsqueeze(2) - distances.unsqueeze(1) + options.margin).masked_select(valid);
  const at::Tensor wrong = losses.masked_select(losses.gt(kNone));
  return wrong.sum() / static_cast<double>(std::max<std::int64_t>(1, wrong.numel()));
}

at::Tensor loss_of(const EmbeddingLossOptions& options, const EmbeddedBatch& batch) {
  switch (options.loss) {
    case EmbeddingLoss::kMultipleNegativesRanking: return negatives_loss(options, batch);
    case EmbeddingLoss::kCosent: return cosent_loss(options, batch);
    case EmbeddingLoss::kBatchAllTriplet: return triplet_loss(options, batch);
    case EmbeddingLoss::kCosine:
      return at::mse_loss(cosines(batch), batch.scores.to(batch.anchors.scalar_type()));
  }
  return {};
}

// Of a query's pairs (i, j) with label i > label j each weight times -log2 sigmoid(s_i - s_j).
at::Tensor lambda_losses(const at::Tensor& logits, const at::Tensor& labels) {
  constexpr double kMu = 10, kLeast = 1e-10;
  const std::int64_t count = logits.size(0);
  const at::Tensor order = logits.argsort(0, /*descending=*/true);
  const at::Tensor scores = logits.index_select(0, order), wanted = labels.index_select(0, order);
  const auto less = [](const at::Tensor& x) { return x.unsqueeze(1) - x.unsqueeze(0); };
  const auto gains = [](const at::Tensor& x) { return at::exp2(x.clamp_min(0)) - 1; };
  // 1 / log2(1 + rank), of ranks from 1 to count + 1.
  const at::Tensor discounts = at::arange(2, count + 3, logits.options()).log2().reciprocal();
  const at::Tensor own = discounts.slice(0, 0, count), steps = own - discounts.slice(0, 1);
  const at::Tensor best = (gains(std::get<0>(labels.sort(0, /*descending=*/true))) * own).sum();
  const at::Tensor distance = less(at::arange(count, order.options())).abs();
  const at::Tensor near = steps.index_select(0, (distance.flatten() - 1).clamp_min(0)).view_as(distance);
  const at::Tensor weights =
      (kMu * near + less(own).abs()) * less(gains(wanted) / best.clamp_min(kLeast)).abs();
  const at::Tensor losses = weights * at::log_sigmoid(less(scores)) / -std::log(2.0);
  return losses.masked_select(less(wanted).gt(0));
}

}  // namespace

at::Tensor embedding_loss(const EmbeddingLossOptions& options, const EmbeddedBatch& batch) {
  // Under autocast, too, cosines are computed in float32: they are multiplied by the scale.
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  if (options.matryoshka_dims.empty()) return loss_of(options, batch);
  at::Tensor sum;
  for (const std::int64_t size : options.matryoshka_dims) {
    TORCH_CHECK(size <= batch.anchors.size(1), "matryoshka_dims: ", size, " is above the vectors' ",
                batch.anchors.size(1));
    EmbeddedBatch cut = batch;
    cut.anchors = batch.anchors.slice(1, 0, size);
    if (batch.documents.defined()) cut.documents = batch.documents.slice(1, 0, size);
    const at::Tensor loss = loss_of(options, cut);
    sum = sum.defined() ? sum + loss : loss;
  }
  return sum;
}

at::Tensor ranking_loss(RankingLoss loss, const at::Tensor& logits, const at::Tensor& labels,
                        const std::vector<std::int64_t>& lists) {
  if (loss == RankingLoss::kBinaryCrossEntropy) return at::binary_cross_entropy_with_logits(logits, labels);
  if (loss == RankingLoss::kMse) return at::mse_loss(logits, labels);
  std::vector<at::Tensor> losses;
  const std::vector<at::Tensor> scores = logits.split_with_sizes(lists),
                                wanted = labels.split_with_sizes(lists);
  for (std::size_t i = 0; i < lists.size(); ++i)
    losses.push_back(loss == RankingLoss::kLambda ? lambda_losses(scores[i], wanted[i])
                                                  : -at::log_softmax(scores[i], 0).slice(0, 0, 1));
  return at::cat(losses).mean();
}

}  // namespace zoo
