#include "models/inference/packed_linear.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "models/checkpoint/packed_parts.h"
#include "models/kernels/cpu.h"

namespace zoo::inference {
namespace {

// Rows of a weight that are packed before their pages are given back.
constexpr std::int64_t kOutputsAtOnce = 1024;

void pack_with_feedback(const at::Tensor& rows, const ErrorFeedback& errors, std::byte* panel) {
  const at::Tensor weights =
      at::zeros({rows.size(1), static_cast<std::int64_t>(kernels::kPanelOutputs)}, at::kFloat);
  weights.narrow(1, 0, rows.size(0)).copy_(rows.t());
  kernels::pack_int4_panel({.weights = weights.mutable_data_ptr<float>(),
                            .inputs = static_cast<std::size_t>(rows.size(1)),
                            .feedback = errors.feedback.const_data_ptr<float>(),
                            .importance = errors.importance.const_data_ptr<float>()},
                           panel);
}

}  // namespace

WeightRows rows_of(const LinearImpl& linear, const PackOptions& options) {
  if (!linear.low_rank) return options.rows_of(linear.weight);
  if (options.stored) options.stored->load(linear.weight);
  return WeightRows(linear.adapted_weight());
}

std::vector<float> floats_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const at::Tensor floats = tensor.detach().to(at::kCPU, at::kFloat).contiguous();
  const auto* data = floats.const_data_ptr<float>();
  return {data, data + floats.numel()};
}

void PackOptions::require_all_taken() const {
  if (stored && stored->packed()) stored->packed()->require_all_taken();
}

std::pair<at::ScalarType, std::vector<std::int64_t>> panel_layout(const kernels::PackedWeight& weight) {
  const auto panels = static_cast<std::int64_t>(kernels::panel_count(weight.outputs)),
             bytes = static_cast<std::int64_t>(kernels::panel_bytes(weight.type, weight.inputs));
  constexpr auto kOutputs = static_cast<std::int64_t>(kernels::kPanelOutputs),
                 kGroup = static_cast<std::int64_t>(kernels::kGroupBytes);
  switch (weight.type) {
    case WeightType::kFloat32:
      return {at::kFloat, {panels, bytes / (4 * kOutputs), kOutputs, 1}};
    case WeightType::kBfloat16:
      return {at::kBFloat16, {panels, bytes / (4 * kOutputs), kOutputs, 2}};
    case WeightType::kInt8:
      return {at::kByte, {panels, bytes / (4 * kOutputs), kOutputs, 4}};
    case WeightType::kInt4:
      return {at::kByte, {panels, bytes / kGroup, kGroup}};
  }
  return {};
}

PackedLinear::PackedLinear(const at::Tensor& parameter, const WeightRows& rows, const at::Tensor& bias,
                           const PackOptions& options)
    : bias_(floats_of(bias)) {
  make({parameter, ".packed"}, rows, 0, rows.size(0), options);
}

PackedLinear PackedLinear::of_expert(const at::Tensor& parameter, const WeightRows& rows, std::int64_t expert,
                                     std::int64_t count, const PackOptions& options) {
  PackedLinear linear;
  const std::int64_t each = rows.size(0) / count;
  linear.make({parameter, ".packed." + std::to_string(expert)}, rows, expert * each, (expert + 1) * each,
              options);
  return linear;
}

void PackedLinear::make(PackedPart part, const WeightRows& rows, std::int64_t first, std::int64_t last,
                        const PackOptions& options) {
  weight_ = {.type = options.weights,
             .outputs = static_cast<std::size_t>(last - first),
             .inputs = static_cast<std::size_t>(rows.size(1))};
  const bool quantized = weight_.type == WeightType::kInt8;
  scales_.resize(quantized ? kernels::panel_count(weight_.outputs) * kernels::kPanelOutputs : 0);
  if (options.stored && options.stored->packed()) {
    map(part, *options.stored->packed());
  } else {
    std::optional<ErrorFeedback> errors;
    if (options.feedback && weight_.type == WeightType::kInt4) errors = options.feedback(part.parameter);
    pack(rows, first, last, errors);
    if (last == rows.size(0)) rows.give_back(0, last);  // and pages that two parts share
  }
  if (quantized) weight_.scales = scales_.data();
  if (options.made == nullptr) return;
  part.weight = weight_;
  options.made->push_back(std::move(part));
}

void PackedLinear::map(const PackedPart& part, const PackedParts& parts) {
  const auto [dtype, shape] = panel_layout(weight_);
  mapped_ = parts.take(part.parameter, part.ending, dtype, shape);
  weight_.panels = static_cast<const std::byte*>(mapped_.const_data_ptr());
  if (scales_.empty()) return;
  const auto count = static_cast<std::int64_t>(scales_.size());
  scales_ = floats_of(parts.take(part.parameter, part.ending + ".scales", at::kFloat, {count}));
}

void PackedLinear::pack(const WeightRows& weight, std::int64_t first_row, std::int64_t last_row,
                        const std::optional<ErrorFeedback>& errors) {
  const WeightType type = weight_.type;
  const std::int64_t outputs = last_row - first_row, inputs = weight.size(1);
  const std::size_t bytes = kernels::panel_bytes(type, static_cast<std::size_t>(inputs));
  constexpr auto kPanel = static_cast<std::int64_t>(kernels::kPanelOutputs);
  memory_ = Memory(kernels::panel_count(weight_.outputs) * bytes, Memory::Pages::kHuge);
  weight_.panels = memory_.data();
  kernels::instruction_set();  // throws here, not in a thread
  const auto pack_panel = [&](std::int64_t panel) {
    const std::int64_t begin = panel * kPanel, end = std::min(begin + kPanel, outputs);
    const at::Tensor floats = weight.rows(first_row + begin, first_row + end).to(at::kCPU, at::kFloat);
    std::byte* packed = memory_.data() + static_cast<std::size_t>(panel) * bytes;
    if (errors) return pack_with_feedback(floats, *errors, packed);
    const kernels::PanelSource source{.rows = floats.const_data_ptr<float>(),
                                      .row = static_cast<std::size_t>(floats.stride(0)),
                                      .column = static_cast<std::size_t>(floats.stride(1)),
                                      .count = static_cast<std::size_t>(end - begin),
                                      .inputs = static_cast<std::size_t>(inputs)};
    float* scales = scales_.empty() ? nullptr : scales_.data() + begin;
    kernels::pack_panel(type, source, packed, scales);
  };
  for (std::int64_t begin = 0; begin < outputs; begin += kOutputsAtOnce) {
    const std::int64_t end = std::min(begin + kOutputsAtOnce, outputs);
    parallel_for(begin / kPanel, (end + kPanel - 1) / kPanel, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t panel = first; panel < last; ++panel) pack_panel(panel);
    });
    weight.give_back(first_row + begin, first_row + end);
  }
}

PackedLinear::PackedLinear(LinearImpl& linear, const PackOptions& options)
    : PackedLinear(linear.weight, rows_of(linear, options), linear.bias, options) {
  if (options.release) linear.weight.set_data(at::empty({0}, linear.weight.options()));
}

std::size_t PackedLinear::bytes() const {
  return kernels::panel_count(weight_.outputs) * kernels::panel_bytes(weight_.type, weight_.inputs) +
         (scales_.size() + bias_.size()) * sizeof(float);
}

Team::Part outputs_of(const Team& team, const kernels::PackedWeight& weight) {
  const bool many = weight.outputs >= 4 * kernels::kPanelOutputs * team.size();
  return team.part_of(weight.outputs, many ? kernels::kPanelOutputs : 16);
}

std::span<const std::byte> ahead(const Team& team, const PackedLinear* linear, std::size_t rows) {
  if (linear == nullptr || rows > 2) return {};
  const kernels::PackedWeight& weight = linear->weight();
  const Team::Part part = outputs_of(team, weight);
  const std::size_t bytes = kernels::panel_bytes(weight.type, weight.inputs);
  const std::size_t first = part.first / kernels::kPanelOutputs;
  return {weight.panels + first * bytes, (kernels::panel_count(part.last) - first) * bytes};
}

}  // namespace zoo::inference
