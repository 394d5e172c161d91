#pragma once

/// @file
/// Use:
///
///     const auto optimizer =
///         zoo::make_optimizer(module, {.kind = zoo::OptimizerKind::kLion, .weight_decay = 0.1});
///     loss.backward();
///     optimizer->step(/*learning_rate=*/1e-4);
///     optimizer->zero_grad();

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "apps/training/parallel/ranks.h"
#include "models/formats/safetensors.h"

namespace zoo {

/// How Muon's learning rate depends on the shape of a matrix [out, in], as torch.optim.Muon's adjust_lr_fn:
///   original         sqrt(max(1, out / in)) (Jordan et al., 2024)
///   match_rms_adamw  0.2 sqrt(max(out, in)): steps as large as AdamW's (Liu et al., 2025), so that learning
///                    rate and weight decay are AdamW's
enum class MuonScale { kOriginal, kMatchRmsAdamW };

/// In the order of MuonScale.
inline const std::vector<std::string> kMuonScaleNames{"original", "match_rms_adamw"};

enum class OptimizerKind { kAdamW, kAdafactor, kSgd, kLion, kMuon };

/// In the order of OptimizerKind.
inline const std::vector<std::string> kOptimizerNames{"adamw", "adafactor", "sgd", "lion", "muon"};

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kAdamW;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;  // for AdamW, also in Muon; the betas also for Lion
  std::optional<double> momentum;                // for SGD, default 0.9, and Muon, default 0.95
  MuonScale muon_scale = MuonScale::kMatchRmsAdamW;
  /// For Muon, by name: rows of the matrices that a weight stacks (models/checkpoint/named_tensors.h).
  std::map<std::string, std::vector<std::int64_t>> stacked_rows = {};
  double weight_decay = 0.1;
  /// For AdamW and Muon: weights decay only where that is the way of their step, too (Chen et al., 2025).
  bool cautious_weight_decay = false;
  double grad_clip = 1.0;  // maximum global gradient norm; 0: no clipping
  /// An update changes nothing if its gradient's norm is more than so many times, above 1, the usual one: the
  /// mean of the last hundred or so, in which such a norm counts as the bound. The first fifty are all usual.
  std::optional<double> skip_spikes;
};

/// Updates the weights of a module from their gradients, clipped by their global norm. Weight decay applies
/// to matrices and embeddings, not to biases and norms (fewer than two dimensions), as in nanoGPT.
class Optimizer {
 public:
  /// Updates the module's parameters that require a gradient. `ranks` share the state; may be null.
  Optimizer(const torch::nn::Module& module, const OptimizerOptions& options, Ranks* ranks);
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// One update, with this share of the weight decay. Skips weights without a gradient; if any gradient is
  /// not finite, no weight changes.
  void step(double learning_rate, double decay_share = 1.0);

  /// The rank that has the state of the parameter i.
  std::int64_t owner(std::size_t i) const { return owners_[i]; }
  /// From now on a gradient is given to its owner alone, and the parameters for which `apart` is true are
  /// not sent to the others after an update.
  void divide_gradients(std::vector<bool> apart) { apart_ = std::move(apart); }

  /// Drops the gradients; the next backward pass creates new ones instead of adding to them.
  void zero_grad() {
    for (auto& [name, parameter] : parameters_) parameter.mutable_grad().reset();
  }

  /// Global gradient norm before clipping, a tensor so that nothing waits for it; undefined before step().
  const at::Tensor& gradient_norm() const { return norm_; }

  /// Updates that step() left out as spikes, a tensor; undefined without OptimizerOptions::skip_spikes.
  const at::Tensor& skipped() const { return skipped_; }

  /// Optimizer state per weight ("exp_avg.NAME") and the number of steps ("step"). All ranks call it; if the
  /// state is divided, rank 0 receives all of it.
  NamedTensors state() const;

  /// Throws Error naming the file and a tensor that is missing or has another shape.
  void load_state(const SafetensorsFile& file);

  /// The trained weights by name.
  const NamedTensors& parameters() const { return parameters_; }

  /// All defined gradients.
  std::vector<at::Tensor> gradients() const;

 protected:
  struct Update {
    std::vector<std::size_t> active;  // indices of parameters with a gradient
    double learning_rate, decay_share;
    at::Tensor divisor;    // divides the gradients, [], at least 1; undefined: no clipping
    at::Tensor found_inf;  // [], float32: 1 if a gradient is not finite, else 0
  };
  virtual void update(const Update& update) = 0;

  /// One tensor per parameter, part of the state; on the meta device if another rank has it.
  struct State {
    std::string name;
    std::vector<at::Tensor> tensors;
  };
  /// Adds a state of zeros with the parameters' shapes; of those alone for which holds() is true.
  State& add_state(const std::string& name, const std::function<bool(std::size_t)>& holds = {});

  /// True if this rank has the parameter's state.
  bool owns(std::size_t i) const { return ranks_ == nullptr || owners_[i] == ranks_->rank(); }
  bool decays(std::size_t i) const { return parameters_[i].second.dim() >= 2; }
  const at::Tensor& parameter(std::size_t i) const { return parameters_[i].second; }
  /// The clipped gradient; a new tensor if clipping is on.
  at::Tensor gradient(std::size_t i, const Update& update) const;

  const OptimizerOptions options_;
  NamedTensors parameters_;
  std::vector<std::unique_ptr<State>> states_;
  at::Tensor step_;  // [], float32

 private:
  void divide_parameters();
  at::Tensor spikes();
  NamedTensors spike_state() const;

  at::Tensor usual_norm_, norms_, skipped_;  // []; norms_ counts those of the mean
  at::Tensor norm_;
  Ranks* ranks_;
  std::vector<std::int64_t> owners_;  // by parameter, a rank
  std::vector<bool> apart_;           // by parameter; empty: each rank has all gradients
};

/// With `ranks`, the state is divided among them (ZeRO-1: Rajbhandari et al., 2020): each weight's state
/// belongs to one rank, which updates the weight and sends it to the others. The weights are as without.
std::unique_ptr<Optimizer> make_optimizer(const torch::nn::Module& module, const OptimizerOptions& options,
                                          Ranks* ranks = nullptr);

}  // namespace zoo
