#include "apps/training/retrieval_losses.h"

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

at::Tensor loss_of(const EmbeddingLossOptions& options, const EmbeddedBatch& batch) {
  switch (options.loss) {
    case EmbeddingLoss::kMultipleNegativesRanking: return negatives_loss(options, batch);
    case EmbeddingLoss::kCosent: return cosent_loss(options, batch);
    case EmbeddingLoss::kCosine:
      return at::mse_loss(cosines(batch), batch.scores.to(batch.anchors.scalar_type()));
  }
  return {};
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
    cut.documents = batch.documents.slice(1, 0, size);
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
  for (const at::Tensor& list : logits.split_with_sizes(lists))
    losses.push_back(-at::log_softmax(list, 0)[0]);
  return at::stack(losses).mean();
}

}  // namespace zoo
