#include "apps/training/ranking_losses.h"

#include <ATen/ATen.h>

namespace zoo {

const std::vector<std::string>& ranking_loss_names() {
  static const std::vector<std::string> names{"binary_cross_entropy", "mse", "listwise_softmax"};
  return names;
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
