#include "models/inference/packed_linear.h"

#include <algorithm>

#include <ATen/ops/empty.h>

#include "data/base/mapped_file.h"

namespace zoo::inference {
namespace {

// Rows of a weight that are packed before their pages are given back.
constexpr std::int64_t kOutputsAtOnce = 1024;

// Gives back the pages of rows of a matrix, if they are contiguous.
void give_back_pages(const at::Tensor& rows) {
  if (!rows.is_contiguous() && !rows.t().is_contiguous()) return;
  MappedFile::give_back(rows.const_data_ptr(), static_cast<std::size_t>(rows.nbytes()));
}

}  // namespace

std::vector<float> floats_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const at::Tensor floats = tensor.detach().to(at::kCPU, at::kFloat).contiguous();
  const auto* data = floats.const_data_ptr<float>();
  return {data, data + floats.numel()};
}

PackedLinear::PackedLinear(const at::Tensor& original, const at::Tensor& bias, WeightType type)
    : bias_(floats_of(bias)) {
  const at::Tensor weight = original.detach();
  const std::int64_t outputs = weight.size(0), inputs = weight.size(1);
  const std::size_t panels = kernels::panel_count(static_cast<std::size_t>(outputs));
  const std::size_t bytes = kernels::panel_bytes(type, static_cast<std::size_t>(inputs));
  constexpr auto kPanel = static_cast<std::int64_t>(kernels::kPanelOutputs);
  memory_ = Memory(panels * bytes, Memory::Pages::kHuge);
  scales_.resize(type == WeightType::kInt8 ? panels * kernels::kPanelOutputs : 0);
  const bool by_row = weight.is_contiguous();
  for (std::int64_t begin = 0; begin < outputs; begin += kOutputsAtOnce) {
    const at::Tensor part = weight.slice(0, begin, std::min(begin + kOutputsAtOnce, outputs));
    const at::Tensor floats = part.to(at::kCPU, at::kFloat);
    const auto* data = floats.const_data_ptr<float>();
    const std::int64_t rows = part.size(0);
    parallel_for(0, (rows + kPanel - 1) / kPanel, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        const kernels::PanelSource source{
            .rows = data + i * kPanel * floats.stride(0),
            .row = static_cast<std::size_t>(floats.stride(0)),
            .column = static_cast<std::size_t>(floats.stride(1)),
            .count = static_cast<std::size_t>(std::min(kPanel, rows - i * kPanel)),
            .inputs = static_cast<std::size_t>(inputs)};
        const auto panel = static_cast<std::size_t>(begin / kPanel + i);
        float* scales = scales_.empty() ? nullptr : scales_.data() + panel * kernels::kPanelOutputs;
        kernels::pack_panel(type, source, memory_.data() + panel * bytes, scales);
      }
    });
    if (by_row) give_back_pages(part);
  }
  if (!by_row) give_back_pages(weight);
  weight_ = {.type = type,
             .outputs = static_cast<std::size_t>(outputs),
             .inputs = static_cast<std::size_t>(inputs),
             .panels = memory_.data(),
             .scales = scales_.empty() ? nullptr : scales_.data()};
}

PackedLinear::PackedLinear(LinearImpl& linear, WeightType type, bool release)
    : PackedLinear(linear.adapted_weight(), linear.bias, type) {
  if (release) linear.weight.set_data(at::empty({0}, linear.weight.options()));
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
