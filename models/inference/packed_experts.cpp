#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "models/inference/packed_stack.h"

// Mixtures of experts. Idea: tokens' choices sorted by expert, which multiplies all of its tokens at once.

namespace zoo::inference {

PackedStack::PackedExperts PackedStack::pack_experts(ExpertsImpl& experts, const PackOptions& options) {
  PackedExperts packed;
  const std::int64_t count = experts.router->weight.size(0);
  PackOptions exact = options;
  exact.weights = WeightType::kFloat32;
  packed.router = PackedLinear(*experts.router, exact);
  const auto pack = [&](LinearImpl& linear, std::vector<PackedLinear>& parts) {
    const WeightRows rows = rows_of(linear, options);
    for (std::int64_t e = 0; e < count; ++e)
      parts.push_back(PackedLinear::of_expert(linear.weight, rows, e, count, options));
    release(linear, options);
  };
  pack(*experts.up, packed.up);
  pack(*experts.down, packed.down);
  if (!experts.shared) return packed;
  packed.shared_up = PackedLinear(*experts.shared->up, options);
  packed.shared_down = PackedLinear(*experts.shared->down, options);
  packed.shared_gate = PackedLinear(*experts.shared_gate, exact);
  return packed;
}

void PackedStack::reserve_experts(std::size_t rows, Workspace& workspace) const {
  const std::size_t chosen = rows * size(config_.experts_per_token);
  const std::size_t gate = is_gated(config_.activation) ? 2 : 1;
  const std::size_t widest =
      std::max({size(config_.expert_width()), size(config_.shared_expert_size), width_});
  workspace.reserve_inputs(chosen, widest);
  workspace.normed.grow_to(rows * width_ * sizeof(float));
  workspace.probabilities.grow_to(rows * size(config_.num_experts) * sizeof(float));
  workspace.choices.grow_to(chosen * sizeof(Choice));
  workspace.gathered.grow_to(chosen * width_ * sizeof(float));
  workspace.expert_outputs.grow_to(chosen * width_ * sizeof(float));
  workspace.inner.grow_to(chosen * size(config_.expert_width()) * gate * sizeof(float));
  workspace.expert_begins.resize(size(config_.num_experts) + 1);
  if (config_.shared_expert_size == 0) return;
  workspace.inner.grow_to(rows * size(config_.shared_expert_size) * gate * sizeof(float));
  workspace.shared_output.grow_to(rows * (width_ + 1) * sizeof(float));  // and the gate of each row
}

void PackedStack::mix_experts(const Run& run, const Layer& layer, float* result) const {
  const std::size_t per_token = size(config_.experts_per_token);
  auto* normed = run.workspace.normed.as<float>();
  const Team::Part own = run.team.part_of(run.pass.rows);
  const kernels::PreparedRows rows{
      .type = WeightType::kFloat32, .data = run.workspace.normed.data(), .row_bytes = width_ * sizeof(float)};
  if (layer.feed_forward_norms.before.empty()) {
    std::memcpy(normed + own.first * width_, run.pass.x + own.first * width_,
                (own.last - own.first) * width_ * sizeof(float));
  } else {
    run.kernels.prepare(normalized(run.pass.x, layer.feed_forward_norms.before, width_), rows, own.first,
                        own.last);
  }
  run.team.wait();
  route(run, layer.experts);
  run_experts(run, layer.experts);
  const bool has_shared = config_.shared_expert_size > 0;
  if (has_shared) run_shared(run, layer.experts);
  const auto* choices = run.workspace.choices.as<Choice>();
  const auto *outputs = run.workspace.expert_outputs.as<float>(),
             *shared = run.workspace.shared_output.as<float>();
  const float* gates = has_shared ? shared + run.pass.rows * width_ : nullptr;
  const bool adds = result == run.pass.x;
  for (std::size_t row = own.first; row < own.last; ++row) {
    float* sum = result + row * width_;
    const float gate = has_shared ? 1.0F / (1.0F + std::exp(-gates[row])) : 0.0F;
    for (std::size_t i = 0; i < width_; ++i) {
      const float before = adds ? sum[i] : 0.0F;
      sum[i] = has_shared ? before + gate * shared[row * width_ + i] : before;
    }
    for (std::size_t c = row * per_token; c < (row + 1) * per_token; ++c) {
      const float* output = outputs + choices[c].place * width_;
      for (std::size_t i = 0; i < width_; ++i) sum[i] += choices[c].weight * output[i];
    }
  }
  run.team.wait();
}

// Chooses each token's experts and gathers the tokens by expert.
void PackedStack::route(const Run& run, const PackedExperts& experts) const {
  const std::size_t count = size(config_.num_experts), per_token = size(config_.experts_per_token);
  auto* probabilities = run.workspace.probabilities.as<float>();
  project(run, run.workspace.normed.as<float>(), {}, experts.router, probabilities, false);
  auto* choices = run.workspace.choices.as<Choice>();
  const Team::Part own = run.team.part_of(run.pass.rows);
  std::vector<std::uint32_t> order(count);
  for (std::size_t row = own.first; row < own.last; ++row) {
    const float* logits = probabilities + row * count;
    std::iota(order.begin(), order.end(), 0U);
    std::partial_sort(
        order.begin(), order.begin() + static_cast<std::ptrdiff_t>(per_token), order.end(),
        [&](auto a, auto b) { return logits[a] > logits[b] || (logits[a] == logits[b] && a < b); });
    const std::size_t summed = config_.expert_weights == ExpertWeights::kOfAll ? count : per_token;
    float sum = 0;
    for (std::size_t i = 0; i < summed; ++i) sum += std::exp(logits[order[i]] - logits[order[0]]);
    for (std::size_t i = 0; i < per_token; ++i)
      choices[row * per_token + i] = {order[i], std::exp(logits[order[i]] - logits[order[0]]) / sum, 0};
  }
  run.team.wait();
  if (run.team.rank() == 0) sort_choices(run);
  run.team.wait();
  const auto* normed = run.workspace.normed.as<float>();
  auto* gathered = run.workspace.gathered.as<float>();
  for (std::size_t c = own.first * per_token; c < own.last * per_token; ++c)
    std::memcpy(gathered + choices[c].place * width_, normed + c / per_token * width_,
                width_ * sizeof(float));
  run.team.wait();
}

void PackedStack::sort_choices(const Run& run) const {
  std::vector<std::size_t>& begins = run.workspace.expert_begins;
  const std::size_t total = run.pass.rows * size(config_.experts_per_token);
  auto* choices = run.workspace.choices.as<Choice>();
  std::fill(begins.begin(), begins.end(), 0);
  for (std::size_t c = 0; c < total; ++c) ++begins[choices[c].expert + 1];
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  std::vector<std::size_t> next(begins.begin(), begins.end() - 1);
  for (std::size_t c = 0; c < total; ++c) choices[c].place = next[choices[c].expert]++;
}

namespace {

kernels::PreparedRows rows_from(kernels::PreparedRows rows, std::size_t first, std::size_t inputs) {
  rows.data += first * rows.row_bytes;
  if (rows.scales != nullptr) rows.scales += first * kernels::scales_in_row(rows.type, inputs);
  if (rows.sums != nullptr) rows.sums += first * kernels::sums_in_row(rows.type, inputs);
  return rows;
}

// The products of all experts with their rows; experts write different rows, so threads need not wait.
void multiply_each(const Team& team, const kernels::InferenceKernels& kernels,
                   const std::vector<PackedLinear>& experts, const std::vector<std::size_t>& begins,
                   const kernels::PreparedRows& rows, kernels::PackedProduct product) {
  float* result = product.result;
  for (std::size_t e = 0; e < experts.size(); ++e) {
    const std::size_t first = begins[e], count = begins[e + 1] - first;
    if (count == 0) continue;
    const kernels::PackedWeight& weight = experts[e].weight();
    product.weight = &weight;
    product.rows = rows_from(rows, first, weight.inputs);
    product.row_count = count;
    product.result = result + first * weight.outputs;
    product.result_row = weight.outputs;
    const Team::Part part = outputs_of(team, weight);
    kernels.multiply(product, part.first, part.last);
  }
  team.wait();
}

}  // namespace

void PackedStack::run_experts(const Run& run, const PackedExperts& experts) const {
  const std::vector<std::size_t>& begins = run.workspace.expert_begins;
  const std::size_t chosen = run.pass.rows * size(config_.experts_per_token);
  const bool gated = is_gated(config_.activation);
  const kernels::Pointwise f = pointwise(gate_of(config_.activation));
  auto* inner = run.workspace.inner.as<float>();
  const kernels::Preparation what{
      .input = run.workspace.gathered.as<float>(), .input_row = width_, .width = width_};
  const kernels::PreparedRows rows = prepare(run, experts.up.front(), what, chosen);
  multiply_each(run.team, run.kernels, experts.up, begins, rows,
                {.result = inner, .pointwise = gated ? kernels::Pointwise::kNone : f});
  const kernels::Preparation activated{.input = inner,
                                       .input_row = experts.up.front().weight().outputs,
                                       .width = experts.down.front().weight().inputs,
                                       .gate = gated ? f : kernels::Pointwise::kNone};
  const kernels::PreparedRows down = prepare(run, experts.down.front(), activated, chosen);
  multiply_each(run.team, run.kernels, experts.down, begins, down,
                {.result = run.workspace.expert_outputs.as<float>()});
}

void PackedStack::run_shared(const Run& run, const PackedExperts& experts) const {
  const auto* normed = run.workspace.normed.as<float>();
  auto* output = run.workspace.shared_output.as<float>();
  const PackedNorm none;  // the rows are normalised
  project(run, normed, none, experts.shared_gate, output + run.pass.rows * width_, false);
  feed_forward(run, {experts.shared_up, experts.shared_down, normed, none}, output, nullptr);
}

}  // namespace zoo::inference
