#include "models/inference/packed_linear.h"

#include <algorithm>

#include <ATen/ops/empty.h>

namespace zoo::inference {
namespace {

// Rows of a weight that are packed before their pages are given back.
constexpr std::int64_t kOutputsAtOnce = 1024;

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

PackedLinear::PackedLinear(const WeightRows& weight, const at::Tensor& bias, WeightType type)
    : bias_(floats_of(bias)) {
  pack(weight, 0, weight.size(0), type);
  weight.give_back(0, weight.size(0));  // and pages that two parts share
}

PackedLinear::PackedLinear(const WeightRows& weight, std::int64_t first, std::int64_t last, WeightType type) {
  pack(weight, first, last, type);
}

void PackedLinear::pack(const WeightRows& weight, std::int64_t first_row, std::int64_t last_row,
                        WeightType type) {
  const std::int64_t outputs = last_row - first_row, inputs = weight.size(1);
  const std::size_t panels = kernels::panel_count(static_cast<std::size_t>(outputs));
  const std::size_t bytes = kernels::panel_bytes(type, static_cast<std::size_t>(inputs));
  constexpr auto kPanel = static_cast<std::int64_t>(kernels::kPanelOutputs);
  memory_ = Memory(panels * bytes, Memory::Pages::kHuge);
  scales_.resize(type == WeightType::kInt8 ? panels * kernels::kPanelOutputs : 0);
  const auto pack_panel = [&](std::int64_t panel) {
    const std::int64_t begin = panel * kPanel, end = std::min(begin + kPanel, outputs);
    const at::Tensor floats = weight.rows(first_row + begin, first_row + end).to(at::kCPU, at::kFloat);
    const kernels::PanelSource source{.rows = floats.const_data_ptr<float>(),
                                      .row = static_cast<std::size_t>(floats.stride(0)),
                                      .column = static_cast<std::size_t>(floats.stride(1)),
                                      .count = static_cast<std::size_t>(end - begin),
                                      .inputs = static_cast<std::size_t>(inputs)};
    float* scales = scales_.empty() ? nullptr : scales_.data() + begin;
    kernels::pack_panel(type, source, memory_.data() + static_cast<std::size_t>(panel) * bytes, scales);
  };
  for (std::int64_t begin = 0; begin < outputs; begin += kOutputsAtOnce) {
    const std::int64_t end = std::min(begin + kOutputsAtOnce, outputs);
    parallel_for(begin / kPanel, (end + kPanel - 1) / kPanel, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t panel = first; panel < last; ++panel) pack_panel(panel);
    });
    weight.give_back(first_row + begin, first_row + end);
  }
  weight_ = {.type = type,
             .outputs = static_cast<std::size_t>(outputs),
             .inputs = static_cast<std::size_t>(inputs),
             .panels = memory_.data(),
             .scales = scales_.empty() ? nullptr : scales_.data()};
}

PackedLinear::PackedLinear(LinearImpl& linear, const PackOptions& options)
    : PackedLinear(rows_of(linear, options), linear.bias, options.weights) {
  if (options.release) linear.weight.set_data(at::empty({0}, linear.weight.options()));
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
