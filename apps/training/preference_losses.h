#pragma once

/// @file
/// Use:
///
///     const zoo::PreferenceLossOptions options{.loss = zoo::PreferenceLoss::kIpo, .beta = 0.2};
///     const at::Tensor loss = zoo::preference_loss(options, chosen, rejected);

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace zoo {

/// Losses that raise the probability of chosen answers above that of rejected ones. A log-ratio is log
/// pi(answer) - log pi_ref(answer): of the model in training and the one that it began as.
enum class PreferenceLoss {
  kDpo,   ///< -log sigmoid(beta (c - r)) of the log-ratios (Rafailov et al., 2023)
  kIpo,   ///< (c - r - 1 / (2 beta))^2, of log-ratios per token (Azar et al., 2023)
  kKto,   ///< 1 - sigmoid(beta (c - kl)), 1 - sigmoid(beta (kl - r)): each answer alone (Ethayarajh et al.,
          ///< 2024)
  kOrpo,  ///< -beta log sigmoid of the log odds ratio, without a reference (Hong et al., 2024)
};

/// In the order of PreferenceLoss.
inline const std::vector<std::string> kPreferenceLossNames{"dpo", "ipo", "kto", "orpo"};

struct PreferenceLossOptions {
  PreferenceLoss loss = PreferenceLoss::kDpo;
  double beta = 0.1;           // above 0: how strongly the reference holds the model, of kOrpo the weight
  double label_smoothing = 0;  // of kDpo, in [0, 0.5): share of pairs whose order is wrong (Mitchell, 2023)
};

/// The mean loss [] of log-ratios [B] each of chosen and rejected answers; of kOrpo those of
/// log-probabilities per token. kKto takes any number of both, and `kl` [], its estimate of the divergence
/// from the reference.
at::Tensor preference_loss(const PreferenceLossOptions& options, const at::Tensor& chosen,
                           const at::Tensor& rejected, const at::Tensor& kl = {});

}  // namespace zoo
