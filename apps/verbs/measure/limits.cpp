#include "apps/verbs/measure/limits.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <numeric>
#include <string_view>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <unistd.h>

#include "apps/compute/compute.h"
#include "data/base/error.h"
#include "models/inference/packed_linear.h"

namespace zoo {

using kernels::WeightType;

namespace {

constexpr double kSeconds = 0.25;  // to find the best pass: other programs and clocks come and go

double best_of(const std::function<void()>& compute) {
  compute();  // memory is new, caches and registers of tiles are empty
  double best = 1e9, spent = 0;
  while (spent < kSeconds) {
    const double seconds = seconds_of(compute);
    best = std::min(best, seconds);
    spent += seconds;
  }
  return best;
}

// Of LibTorch's products, which are oneDNN's; 0 for types that it does not multiply.
double library_product_rate(WeightType type) {
  constexpr std::int64_t kRows = 512, kWidth = 2048;
  if (type != WeightType::kBfloat16) return 0;
  const at::NoGradGuard no_grad;
  const at::Tensor rows = at::randn({kRows, kWidth}).to(at::kBFloat16);
  const at::Tensor weight = at::randn({kWidth, kWidth}).to(at::kBFloat16);
  at::Tensor result = at::empty({kRows, kWidth}, at::kBFloat16);
  const double seconds = best_of([&] { at::mm_out(result, rows, weight); });
  return 2.0 * kRows * kWidth * kWidth / seconds;
}

// Of the multiply-add units.
double arithmetic_rate() {
  constexpr std::size_t kRounds = 100'000;  // some 0.2 ms
  const kernels::InferenceKernels& kernels = kernels::inference_kernels();
  std::vector<double> operations(team_size());
  const double seconds = best_of([&] {
    run_team([&](const Team& team) {
      std::array<float, 16> result{};
      operations[team.rank()] = kernels.multiply_add(kRounds, result.data());
    });
  });
  return std::accumulate(operations.begin(), operations.end(), 0.0) / seconds;
}

// Of our own products of 512 rows.
double packed_product_rate(WeightType type) {
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

// The line of /proc/cpuinfo that begins with `key`, after its colon; empty if there is none.
std::string line_of_cpuinfo(std::string_view key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with(key) && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

std::string size_of_cache(int number) {
  const long bytes = ::sysconf(number);
  if (bytes <= 0) return "unknown";
  return bytes < (1 << 20) ? std::to_string(bytes >> 10) + " KB" : std::to_string(bytes >> 20) + " MB";
}

double clock_of_processor() {
  constexpr int kProducts = 1 << 20, kClocks = 3;
  std::uint64_t product = 3;
  const double seconds = best_of([&] {
    std::uint64_t next = product;
    for (int i = 0; i < kProducts; ++i) next *= product;
    product = next;  // odd: it stays so, and no compiler knows it
  });
  return kClocks * kProducts / seconds;
}

}  // namespace

Processor this_processor() {
  Processor processor{.name = line_of_cpuinfo("model name"), .clock = clock_of_processor()};
  if (processor.name.empty()) processor.name = "unknown processor";
  if (line_of_cpuinfo("flags").find(" hypervisor") != std::string::npos)
    processor.name += " (virtual machine)";
  processor.caches = "L1 " + size_of_cache(_SC_LEVEL1_DCACHE_SIZE) + ", L2 " +
                     size_of_cache(_SC_LEVEL2_CACHE_SIZE) + ", L3 " + size_of_cache(_SC_LEVEL3_CACHE_SIZE);
  return processor;
}

double read_rate(std::size_t bytes) {
  constexpr std::size_t kUnit = 256;
  const std::size_t count = (bytes + kUnit - 1) / kUnit * kUnit;
  const inference::Memory memory(count, inference::Memory::Pages::kHuge);
  std::fill_n(memory.as<std::uint8_t>(), count, std::uint8_t{1});
  const kernels::InferenceKernels& kernels = kernels::inference_kernels();
  std::vector<std::uint64_t> sums(team_size());
  const double seconds = best_of([&] {
    run_team([&](const Team& team) {
      const Team::Part part = team.part_of(count, kUnit);
      sums[team.rank()] += kernels.read_words(memory.data() + part.first, part.last - part.first);
    });
  });
  if (std::accumulate(sums.begin(), sums.end(), std::uint64_t{0}) == 0)
    throw Error("the memory was not read");
  return static_cast<double>(count) / seconds;
}

double product_rate(WeightType type) {
  if (type == WeightType::kFloat32) return arithmetic_rate();
  return std::max(packed_product_rate(type), library_product_rate(type));
}

}  // namespace zoo
