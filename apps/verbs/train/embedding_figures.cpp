#include <limits>
#include <map>
#include <utility>

#include <ATen/ATen.h>

#include "apps/answers/answers.h"
#include "apps/training/metrics/ranking_metrics.h"
#include "apps/verbs/train/text_objectives.h"
#include "data/base/error.h"
#include "models/tasks/sentence_modules.h"

namespace zoo {
namespace {

// Below it all ranks are the same to the figures.
constexpr std::int64_t kLastRank = 11;

}  // namespace

void EmbeddingFigures::add(const EmbeddedBatch& batch, std::vector<const SentenceExample*> examples) {
  const auto kept = [&](const at::Tensor& x) {
    if (!x.defined()) return x;
    if (!x.isfinite().all().item<bool>())
      throw Error("the vector of a text is not finite: nothing can be ranked by it");
    const at::Tensor used = x.detach().slice(1, 0, truncate_dim_).cpu();
    return similarity_ == "cosine" ? unit_vectors(used) : used;
  };
  rows_ += batch.anchors.size(0);
  const at::Tensor wanted = batch.scores.defined() ? batch.scores.cpu() : batch.scores;
  batches_.push_back({{kept(batch.anchors), kept(batch.documents), wanted}, std::move(examples)});
}

std::vector<Score> EmbeddingFigures::take() {
  const Batches batches = std::exchange(batches_, {});
  rows_ = 0;
  if (batches.empty()) return {};
  if (loss_ == EmbeddingLoss::kBatchAllTriplet) return scores_of_labels(batches);
  return takes_scores(loss_) ? scores_of_pairs(batches) : scores_of_ranks(batches);
}

// [..., N, M] of kept vectors [..., N, D] and [..., M, D].
at::Tensor EmbeddingFigures::similarities(const at::Tensor& anchors, const at::Tensor& documents) const {
  const bool manhattan = similarity_ == "manhattan";
  if (manhattan || similarity_ == "euclidean") return -at::cdist(anchors, documents, manhattan ? 1 : 2);
  return at::matmul(anchors, documents.transpose(-2, -1));
}

std::vector<Score> EmbeddingFigures::scores_of_pairs(const Batches& batches) const {
  std::vector<at::Tensor> wanted, found;
  for (const auto& [batch, examples] : batches) {
    wanted.push_back(batch.scores);
    found.push_back(similarities(batch.anchors.unsqueeze(1), batch.documents.unsqueeze(1)).flatten());
  }
  return {{"spearman", spearman(numbers_of(at::cat(wanted)), numbers_of(at::cat(found)))}};
}

std::vector<Score> EmbeddingFigures::scores_of_labels(const Batches& batches) const {
  std::vector<at::Tensor> vectors, labels;
  for (const auto& [batch, examples] : batches) {
    vectors.push_back(batch.anchors);
    labels.push_back(batch.scores);
  }
  const at::Tensor all = at::cat(vectors), wanted = at::cat(labels);
  double right = 0;
  std::int64_t before = 0;
  for (const auto& [batch, examples] : batches) {
    const at::Tensor scores = similarities(batch.anchors, all);
    scores.diagonal(before).fill_(-std::numeric_limits<float>::infinity());
    right += wanted.index_select(0, scores.argmax(1)).eq(batch.scores).sum().item<double>();
    before += batch.anchors.size(0);
  }
  return {{"accuracy", right / static_cast<double>(before)}};
}

std::vector<Score> EmbeddingFigures::scores_of_ranks(const Batches& batches) const {
  std::vector<at::Tensor> positives, negatives;
  std::map<std::string, std::int64_t> numbers;  // of the documents' texts
  std::vector<std::int64_t> own_texts, other_texts;
  for (const auto& [batch, examples] : batches) {
    positives.push_back(batch.documents.slice(0, 0, batch.anchors.size(0)));
    negatives.push_back(batch.documents.slice(0, batch.anchors.size(0)));
    for (const SentenceExample* example : examples)
      for (std::size_t i = 1; i < example->texts.size(); ++i)
        (i == 1 ? own_texts : other_texts)
            .push_back(numbers.emplace(example->texts[i], std::ssize(numbers)).first->second);
  }
  const at::Tensor own = at::cat(positives), documents = at::cat({own, at::cat(negatives)});
  const at::Tensor texts = at::cat({at::tensor(own_texts, at::kLong), at::tensor(other_texts, at::kLong)});
  std::vector<std::vector<double>> gains;
  for (const auto& [batch, examples] : batches) {
    const at::Tensor scores = similarities(batch.anchors, documents);
    const auto before = std::ssize(gains), rows = batch.anchors.size(0);
    const at::Tensor right = at::arange(before, before + rows).unsqueeze(1);
    // Before the positive rank documents of other texts: the same one may be the positive of several rows.
    const at::Tensor others = texts.ne(texts.slice(0, before, before + rows).unsqueeze(1));
    const at::Tensor ranks = scores.ge(scores.gather(1, right)).logical_and(others).sum(1) + 1;
    for (const double rank : numbers_of(ranks.clamp_max(kLastRank)))
      gains.emplace_back(static_cast<std::size_t>(rank)).back() = 1;
  }
  return mean_figures(gains);
}

}  // namespace zoo
