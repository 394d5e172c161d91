#pragma once

/// @file
/// Use:
///
///     zoo::Experts experts(config);  // with config.num_experts
///     at::Tensor router_logits;      // [B T, E]
///     const at::Tensor y = experts->forward(x, /*add_to=*/x, &router_logits);
///     const at::Tensor loss =
///         zoo::router_loss({router_logits}, config.experts_per_token, /*attention_mask=*/{});

#include <vector>

#include "models/layers/feed_forward.h"

namespace zoo {

/// Mixture of experts (Shazeer et al., 2017): a linear router gives each token a probability for each of E
/// feed-forward networks; the k most probable read the token, and their outputs are summed with the weights
/// that config.expert_weights says. A shared expert (Dai et al., 2024), if config.shared_expert_size is
/// positive, reads every token; its output is multiplied by sigmoid(shared_gate(x)). x [B, T, C] to
/// [B, T, C], added to `add_to` if given.
class ExpertsImpl : public torch::nn::Module {
 public:
  explicit ExpertsImpl(const TransformerConfig& config);

  /// `router_logits` receives the router's output [B T, E], if it is not null.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& add_to = {}, at::Tensor* router_logits = nullptr);

  Linear router{nullptr};       // [E, C]
  Linear up{nullptr};           // [E F, C], of a gated unit [E 2F, C]: the experts' rows one after another
  Linear down{nullptr};         // [E C, F]
  FeedForward shared{nullptr};  // empty, like its gate, without a shared expert
  Linear shared_gate{nullptr};  // [1, C]

 private:
  at::Tensor run_all_experts(const at::Tensor& rows, const at::Tensor& chosen, const at::Tensor& weights);
  at::Tensor run_experts(const at::Tensor& rows, const at::Tensor& chosen, const at::Tensor& weights);

  std::int64_t count_, chosen_;
  Activation activation_;
  ExpertWeights weights_;
  double inner_dropout_, output_dropout_;
};
TORCH_MODULE(Experts);

/// Loss that balances the experts (Fedus et al., 2022, equations 4 to 6), as transformers computes it over
/// all layers together: E sum_e f_e p_e, where f_e is the number of times that a token goes to expert e and
/// p_e its probability, both per token. `logits` are those of the layers' routers, [B T, E] each;
/// attention_mask [B, T] leaves out what it hides, and may be undefined. Returns [], float32.
at::Tensor router_loss(const std::vector<at::Tensor>& logits, std::int64_t experts_per_token,
                       const at::Tensor& attention_mask);

}  // namespace zoo
