#include "models/inference/packed_linear.h"

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <set>

#include <ATen/ops/zeros.h>

#include "data/base/field_error.h"
#include "models/checkpoint/packed_parts.h"
#include "models/kernels/cpu.h"

namespace zoo::inference {
namespace {

// Rows of a weight that are packed before their pages are freed.
constexpr std::int64_t kOutputsAtOnce = 1024;
constexpr auto kPanel = static_cast<std::int64_t>(kernels::kPanelOutputs);

// Format of a panel whose rows have blocks of these types of GGUF.
kernels::BlockFormat format_of(const std::set<std::string>& types) {
  using kernels::BlockFormat;
  const auto only = [&](std::initializer_list<const char*> some) {
    return std::ranges::all_of(
        types, [&](const std::string& type) { return std::ranges::find(some, type) != some.end(); });
  };
  if (only({"Q4_0"})) return BlockFormat::kNibbles;
  if (only({"Q4_0", "Q4_1", "Q4_K"})) return BlockFormat::kNibblesMinimum;
  if (only({"Q6_K"})) return BlockFormat::kSixBits;
  if (only({"Q5_0", "Q5_1", "Q5_K"})) return BlockFormat::kFiveBits;
  return only({"Q8_0"}) ? BlockFormat::kBytes : BlockFormat::kRuns;
}

void pack_with_feedback(const at::Tensor& rows, const ErrorFeedback& errors, std::byte* panel) {
  const at::Tensor weights = at::zeros({rows.size(1), kPanel}, at::kFloat);
  weights.narrow(1, 0, rows.size(0)).copy_(rows.t());
  kernels::pack_int4_panel({.weights = weights.mutable_data_ptr<float>(),
                            .inputs = static_cast<std::size_t>(rows.size(1)),
                            .feedback = errors.feedback.const_data_ptr<float>(),
                            .importance = errors.importance.const_data_ptr<float>()},
                           panel);
}

}  // namespace

WeightRows rows_of(const LinearImpl& linear, const PackOptions& options) {
  if (linear.is_plain()) return options.rows_of(linear.weight);
  if (options.stored && !linear.frozen) options.stored->load(linear.weight);
  return WeightRows(linear.adapted_weight());
}

std::vector<float> floats_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const at::Tensor floats = tensor.detach().to(at::kCPU, at::kFloat).contiguous();
  const auto* data = floats.const_data_ptr<float>();
  return {data, data + floats.numel()};
}

PackOptions PackOptions::for_whole_sequences() const {
  PackOptions options = *this;
  if (cache == WeightType::kInt8)
    options.cache = weights == WeightType::kFloat32 ? WeightType::kFloat32 : WeightType::kBfloat16;
  return options;
}

void PackOptions::require_all_taken() const {
  if (stored && stored->packed()) stored->packed()->require_all_taken();
}

std::pair<at::ScalarType, std::vector<std::int64_t>> panel_layout(const kernels::PackedWeight& weight) {
  const auto panels = static_cast<std::int64_t>(kernels::panel_count(weight.outputs)),
             bytes = static_cast<std::int64_t>(kernels::panel_bytes(weight.type, weight.inputs));
  constexpr auto kGroup = static_cast<std::int64_t>(kernels::kGroupBytes);
  switch (weight.type) {
    case WeightType::kFloat32: return {at::kFloat, {panels, bytes / (4 * kPanel), kPanel, 1}};
    case WeightType::kBfloat16: return {at::kBFloat16, {panels, bytes / (4 * kPanel), kPanel, 2}};
    case WeightType::kInt8: return {at::kByte, {panels, bytes / (4 * kPanel), kPanel, 4}};
    case WeightType::kInt4: return {at::kByte, {panels, bytes / kGroup, kGroup}};
    case WeightType::kBlocks: TORCH_CHECK(false, "no file holds packed blocks");
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
  if (weight_.type == WeightType::kBlocks && rows.block_types(first, last).empty())
    weight_.type = WeightType::kFloat32;
  const bool quantized = weight_.type == WeightType::kInt8;
  scales_.resize(quantized ? kernels::panel_count(weight_.outputs) * kernels::kPanelOutputs : 0);
  if (options.stored && options.stored->packed()) {
    map(part, *options.stored->packed());
  } else {
    std::optional<ErrorFeedback> errors;
    if (options.feedback && weight_.type == WeightType::kInt4) errors = options.feedback(part.parameter);
    if (weight_.type == WeightType::kBlocks) {
      pack_blocks(rows, first, last);
    } else {
      pack(rows, first, last, errors);
    }
    if (last == rows.size(0)) rows.give_back(0, last);  // also pages that two parts share
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
  const std::size_t bytes = kernels::panel_bytes(type, weight_.inputs);
  memory_ = Memory(kernels::panel_count(weight_.outputs) * bytes, Memory::Pages::kHuge);
  weight_.panels = memory_.data();
  kernels::instruction_set();  // throws here, not in a thread
  pack_panels(weight, first_row, last_row, [&](std::size_t panel, std::int64_t begin, std::int64_t end) {
    const at::Tensor floats = weight.rows(begin, end).to(at::kCPU, at::kFloat);
    std::byte* packed = memory_.data() + panel * bytes;
    if (errors) return pack_with_feedback(floats, *errors, packed);
    const kernels::PanelSource source{.rows = floats.const_data_ptr<float>(),
                                      .row = static_cast<std::size_t>(floats.stride(0)),
                                      .column = static_cast<std::size_t>(floats.stride(1)),
                                      .count = static_cast<std::size_t>(end - begin),
                                      .inputs = weight_.inputs};
    float* scales = scales_.empty() ? nullptr : scales_.data() + panel * kernels::kPanelOutputs;
    kernels::pack_panel(type, source, packed, scales);
  });
}

void PackedLinear::pack_panels(const WeightRows& rows, std::int64_t first_row, std::int64_t last_row,
                               PackPanel pack_panel) const {
  const std::int64_t outputs = last_row - first_row;
  for (std::int64_t begin = 0; begin < outputs; begin += kOutputsAtOnce) {
    const std::int64_t end = std::min(begin + kOutputsAtOnce, outputs);
    parallel_for(begin / kPanel, (end + kPanel - 1) / kPanel, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t panel = first; panel < last; ++panel)
        pack_panel(static_cast<std::size_t>(panel), first_row + panel * kPanel,
                   std::min(first_row + (panel + 1) * kPanel, last_row));
    });
    rows.give_back(first_row + begin, first_row + end);
  }
}

void PackedLinear::pack_blocks(const WeightRows& rows, std::int64_t first_row, std::int64_t last_row) {
  std::vector<std::size_t> places;
  std::size_t bytes = 0;
  for (std::int64_t begin = first_row; begin < last_row; begin += kPanel) {
    places.push_back(bytes);
    blocks_.push_back({format_of(rows.block_types(begin, std::min(begin + kPanel, last_row))), nullptr});
    bytes += kernels::panel_bytes(blocks_.back().format, weight_.inputs);
  }
  memory_ = Memory(bytes, Memory::Pages::kHuge);
  for (std::size_t i = 0; i < places.size(); ++i) blocks_[i].data = memory_.data() + places[i];
  weight_.blocks = blocks_.data();
  std::atomic<bool> holds = true;
  pack_panels(rows, first_row, last_row, [&](std::size_t panel, std::int64_t begin, std::int64_t end) {
    const BlockRows blocks = rows.blocks(begin, end);
    const kernels::BlockSource source{.numbers = blocks.numbers.data(),
                                      .scales = blocks.scales.data(),
                                      .minimums = blocks.minimums.data(),
                                      .count = static_cast<std::size_t>(end - begin),
                                      .inputs = weight_.inputs};
    if (!kernels::pack_block_panel(blocks_[panel].format, source, memory_.data() + places[panel]))
      holds = false;
  });
  if (!holds)
    throw FieldError(rows.source(),
                     " has a scale that is no number or is above 65,504, which float16 does not hold; use ",
                     Field{"weights"}, " float32");
}

void release(LinearImpl& linear, const PackOptions& options) {
  if (options.release)
    linear.weight.set_data(at::zeros({1}, linear.weight.options()).expand(linear.weight.sizes()));
}

PackedLinear::PackedLinear(LinearImpl& linear, const PackOptions& options)
    : PackedLinear(linear.weight, rows_of(linear, options), linear.bias, options) {
  release(linear, options);
}

std::size_t PackedLinear::bytes() const {
  return kernels::panels_of(weight_, 0, kernels::panel_count(weight_.outputs)).size() +
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
  return kernels::panels_of(weight, part.first / kernels::kPanelOutputs, kernels::panel_count(part.last));
}

}  // namespace zoo::inference
