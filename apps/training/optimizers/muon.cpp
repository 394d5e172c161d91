#include "apps/training/optimizers/muon.h"

#include <algorithm>
#include <cmath>

#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <torch/nn/modules/linear.h>

#include "apps/training/parallel/tensor_parts.h"
#include "data/base/field_error.h"
#include "models/kernels/parallel.h"
#include "models/kernels/training/muon.h"
#include "models/layers/experts.h"

namespace zoo {
namespace {

constexpr double kMomentum = 0.95;  // without OptimizerOptions::momentum

// True if a component of the name is a number.
bool is_numbered(const std::string& name) {
  bool digits_only = false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool begins = i == 0 || name[i - 1] == '.';
    if (name[i] == '.' && digits_only) return true;
    digits_only = (begins || digits_only) && name[i] >= '0' && name[i] <= '9';
  }
  return digits_only;
}

// models/kernels/training/muon.h, on LibTorch's operators.
at::Tensor orthogonalized(at::Tensor x) {
  using Constants = kernels::NewtonSchulz;
  const bool tall = x.size(0) > x.size(1);
  x = x / x.norm().clamp_min(Constants::smallest_norm);
  at::Tensor gram = tall ? x.t().mm(x) : x.mm(x.t()), factor;
  for (int iteration = 0; iteration < Constants::iterations; ++iteration) {
    const at::Tensor polynomial = at::addmm(gram, gram, gram, Constants::b, Constants::c);
    polynomial.diagonal().add_(Constants::a);
    factor = factor.defined() ? polynomial.mm(factor) : polynomial;
    if (iteration + 1 < Constants::iterations) gram = polynomial.mm(gram).mm(polynomial);
  }
  return tall ? x.mm(factor) : factor.mm(x);
}

}  // namespace

std::map<std::string, std::vector<std::int64_t>> hidden_matrices(
    const torch::nn::Module& module, const std::map<std::string, std::vector<std::int64_t>>& stacked) {
  std::map<std::string, std::vector<std::int64_t>> matrices;
  const auto add = [&](const std::string& name, std::int64_t rows, std::int64_t count) {
    const auto found = stacked.find(name);
    matrices[name] = found != stacked.end()
                         ? found->second
                         : std::vector<std::int64_t>(static_cast<std::size_t>(count), rows / count);
  };
  for (const auto& entry : module.named_modules("", /*include_self=*/false)) {
    if (!is_numbered(entry.key())) continue;
    if (const auto* linear = entry.value()->as<LinearImpl>())
      add(entry.key() + ".weight", linear->weight.size(0), 1);
    if (const auto* linear = entry.value()->as<torch::nn::LinearImpl>())
      add(entry.key() + ".weight", linear->weight.size(0), 1);
  }
  for (const auto& entry : module.named_modules("", /*include_self=*/false)) {
    const auto* experts = entry.value()->as<ExpertsImpl>();
    if (experts == nullptr) continue;
    const std::int64_t count = experts->router->weight.size(0);
    add(entry.key() + ".up.weight", experts->up->weight.size(0), count);
    add(entry.key() + ".down.weight", experts->down->weight.size(0), count);
    matrices.erase(entry.key() + ".router.weight");
    matrices.erase(entry.key() + ".shared_gate.weight");
  }
  return matrices;
}

Muon::Muon(const torch::nn::Module& module, const OptimizerOptions& options, Ranks* ranks)
    : Muon(module, options, ranks, hidden_matrices(module, options.stacked_rows)) {}

Muon::Muon(const torch::nn::Module& module, const OptimizerOptions& options, Ranks* ranks, const Rows& hidden)
    : AdamW(module, options, ranks, [&](std::size_t i) { return !hidden.contains(parameters_[i].first); }),
      rows_(parameters_.size()),
      momenta_(add_state("momentum_buffer", [&](std::size_t i) {
        const auto found = hidden.find(parameters_[i].first);
        if (found != hidden.end()) rows_[i] = found->second;
        return !rows_[i].empty();
      })) {
  if (std::ranges::all_of(rows_, [](const auto& rows) { return rows.empty(); }))
    throw FieldError(Field{"optimizer"},
                     " muon updates the matrices of a model's layers, and none of them is trained here (they "
                     "may be frozen, or LoRA's adapters be trained instead); expected adamw");
}

void Muon::update(const Update& update) {
  Update others = update;
  std::vector<std::size_t> active;
  std::vector<at::Tensor> weights;
  for (const std::size_t i : update.active) {
    if (rows_[i].empty()) continue;
    active.push_back(i);
    weights.push_back(parameter(i));
  }
  std::erase_if(others.active, [&](std::size_t i) { return !rows_[i].empty(); });
  if (!others.active.empty()) AdamW::update(others);
  if (active.empty() || update.found_inf.item<float>() != 0) return;
  if (suit_kernels(weights)) {
    update_by_kernels(update, active);
  } else {
    update_by_libtorch(update, active);
  }
}

double Muon::step_size(std::int64_t rows, std::int64_t columns, double learning_rate) const {
  const auto out = static_cast<double>(rows), in = static_cast<double>(columns);
  return learning_rate * (options_.muon_scale == MuonScale::kOriginal ? std::sqrt(std::max(1.0, out / in))
                                                                      : 0.2 * std::sqrt(std::max(out, in)));
}

// A thread updates a matrix, from its gradient to its weight; the largest come first.
void Muon::update_by_kernels(const Update& update, const std::vector<std::size_t>& active) {
  struct Job {
    kernels::MuonUpdate update;
    kernels::MuonMatrix matrix;
    std::size_t memory;
  };
  const double lost = update.learning_rate * update.decay_share * options_.weight_decay;
  std::vector<at::Tensor> gradients;
  std::vector<Job> jobs;
  for (const std::size_t i : active) {
    gradients.push_back(parameter(i).grad().contiguous());
    const std::int64_t columns = parameter(i).size(1);
    std::int64_t first = 0;
    for (const std::int64_t rows : rows_[i]) {
      const auto height = static_cast<std::size_t>(rows), width = static_cast<std::size_t>(columns);
      jobs.push_back(
          {.update = {.momentum = static_cast<float>(options_.momentum.value_or(kMomentum)),
                      .nesterov = true,
                      .kept = static_cast<float>(1 - lost),
                      .cautious = options_.cautious_weight_decay,
                      .step_size = static_cast<float>(step_size(rows, columns, update.learning_rate)),
                      .divisor = update.divisor.defined() ? update.divisor.item<float>() : 1.0F},
           .matrix = {.rows = height,
                      .columns = width,
                      .weight = parameter(i).mutable_data_ptr<float>() + first,
                      .gradient = gradients.back().const_data_ptr<float>() + first,
                      .momentum = momenta_.tensors[i].mutable_data_ptr<float>() + first},
           .memory = kernels::muon_memory(height, width)});
      first += rows * columns;
    }
  }
  std::ranges::stable_sort(jobs, std::greater<>(), &Job::memory);
  const auto threads = static_cast<std::int64_t>(team_size());
  const at::Tensor memory = at::empty({threads, static_cast<std::int64_t>(jobs.front().memory)});
  run_team([&](const Team& team) {
    float* own = memory.mutable_data_ptr<float>() + team.rank() * jobs.front().memory;
    team.share(jobs.size(), 1, [&](Team::Part part) {
      for (std::size_t i = part.first; i < part.last; ++i) kernels::muon(jobs[i].update, jobs[i].matrix, own);
    });
  });
}

void Muon::update_by_libtorch(const Update& update, const std::vector<std::size_t>& active) {
  const double lost = update.learning_rate * update.decay_share * options_.weight_decay;
  const double kept = options_.momentum.value_or(kMomentum);
  for (const std::size_t i : active) {
    const at::Tensor g = gradient(i, update), &momentum = momenta_.tensors[i];
    momentum.lerp_(g, 1 - kept);
    const at::Tensor direction = g.lerp(momentum, kept);  // Nesterov's
    std::int64_t first = 0;
    for (const std::int64_t rows : rows_[i]) {
      const at::Tensor part = parameter(i).narrow(0, first, rows),
                       step = orthogonalized(direction.narrow(0, first, rows));
      if (options_.cautious_weight_decay) {
        part.mul_(1 - lost * (step * part).ge(0));
      } else {
        part.mul_(1 - lost);
      }
      part.sub_(step, step_size(rows, direction.size(1), update.learning_rate));
      first += rows;
    }
  }
}

}  // namespace zoo
