#include "apps/verbs/measure/limits.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <ATen/ops/randn.h>

#include "apps/compute/measure.h"
#include "data/base/error.h"
#include "models/inference/packed_linear.h"

namespace zoo {
namespace {

constexpr int kPasses = 4;

double best_of(const std::function<void()>& compute) {
  double best = 1e9;
  for (int i = 0; i < kPasses; ++i) best = std::min(best, seconds_of(compute));
  return best;
}

}  // namespace

double memory_bandwidth() {
  const inference::Memory memory(std::size_t{512} << 20, inference::Memory::Pages::kHuge);
  const auto* words = memory.as<std::uint64_t>();
  const std::size_t count = memory.size() / sizeof *words;
  std::fill_n(memory.as<std::uint64_t>(), count, 1);
  std::vector<std::uint64_t> sums(team_size());
  const double seconds = best_of([&] {
    run_team([&](const Team& team) {
      const Team::Part part = team.part_of(count);
      sums[team.rank()] = std::accumulate(words + part.first, words + part.last, std::uint64_t{0});
    });
  });
  if (std::accumulate(sums.begin(), sums.end(), std::uint64_t{0}) == 0)
    throw Error("the memory was not read");
  return static_cast<double>(memory.size()) / seconds;
}

double product_rate(kernels::WeightType type) {
  constexpr std::size_t kRows = 512, kWidth = 2048, kProducts = 4;
  const at::Tensor weight = at::randn({kWidth, kWidth});
  const inference::PackedLinear linear(weight, WeightRows(weight), {}, {.weights = type});
  const kernels::InferenceKernels& kernels = kernels::inference_kernels();
  const std::size_t row_bytes = kernels.row_bytes(type, kWidth);
  const std::size_t scales = kRows * kernels::scales_in_row(type, kWidth),
                    sums = kRows * kernels::sums_in_row(type, kWidth);
  const inference::Memory input(kRows * kWidth * sizeof(float)), result(kRows * kWidth * sizeof(float)),
      rows(kRows * row_bytes), row_scales(scales * sizeof(float)), row_sums(sums * sizeof(std::int32_t));
  const kernels::PreparedRows prepared{.type = type,
                                       .data = rows.data(),
                                       .row_bytes = row_bytes,
                                       .scales = row_scales.as<float>(),
                                       .sums = row_sums.as<std::int32_t>()};
  std::fill_n(input.as<float>(), kRows * kWidth, 1.0F);
  const double seconds = best_of([&] {
    run_team([&](const Team& team) {
      const Team::Part part = team.part_of(kRows);
      kernels.prepare({.input = input.as<float>(), .input_row = kWidth, .width = kWidth}, prepared,
                      part.first, part.last);
      team.wait();
      const Team::Part columns = inference::outputs_of(team, linear.weight());
      for (std::size_t i = 0; i < kProducts; ++i)
        kernels.multiply({.weight = &linear.weight(),
                          .rows = prepared,
                          .row_count = kRows,
                          .result = result.as<float>(),
                          .result_row = kWidth},
                         columns.first, columns.last);
    });
  });
  return 2.0 * kProducts * kRows * kWidth * kWidth / seconds;
}

}  // namespace zoo
