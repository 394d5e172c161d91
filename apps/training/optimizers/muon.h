#pragma once

#include <map>
#include <string>

#include "apps/training/optimizers/adamw.h"

namespace zoo {

/// By name of a parameter [rows, columns], the rows of the matrices in it that Muon updates: of `stacked`,
/// else all. These parameters are the weights of Linear layers in numbered modules
/// ("blocks.0.attention.qkv"); of experts each is a matrix, and a router, the head of its layer, is none.
std::map<std::string, std::vector<std::int64_t>> hidden_matrices(
    const torch::nn::Module& module, const std::map<std::string, std::vector<std::int64_t>>& stacked = {});

/// Muon (Jordan et al., 2024) as in torch.optim.Muon: a hidden matrix moves by its momentum, whose singular
/// values five Newton-Schulz iterations bring to about 1. AdamW updates embeddings, heads, norms and biases.
/// The iterations compute in float32, torch's in bfloat16 (models/kernels/training/muon.h says how).
/// Throws Error if no hidden matrix is trained.
class Muon final : public AdamW {
 public:
  Muon(const torch::nn::Module& module, const OptimizerOptions& options, Ranks* ranks = nullptr);

 private:
  using Rows = std::map<std::string, std::vector<std::int64_t>>;
  Muon(const torch::nn::Module& module, const OptimizerOptions& options, Ranks* ranks, const Rows& hidden);

  void update(const Update& update) override;
  void update_by_kernels(const Update& update, const std::vector<std::size_t>& active);
  void update_by_libtorch(const Update& update, const std::vector<std::size_t>& active);
  double step_size(std::int64_t rows, std::int64_t columns, double learning_rate) const;

  std::vector<std::vector<std::int64_t>> rows_;  // by parameter; none: AdamW updates it
  State& momenta_;
};

}  // namespace zoo
