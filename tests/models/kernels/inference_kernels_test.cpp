#include "tests/models/kernels/inference_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "tests/models/kernels/unpacked.h"

using namespace zoo::kernels;
using zoo::test::find_kernels;
using zoo::test::Floats;
using zoo::test::random_floats;
using zoo::test::unpacked;

namespace {

struct Packed {
  std::vector<std::byte> panels;
  Floats scales;
  PackedWeight weight;
};

Packed pack(WeightType type, const Floats& values, std::size_t outputs, std::size_t inputs) {
  Packed packed;
  const std::size_t bytes = panel_bytes(type, inputs), panels = panel_count(outputs);
  packed.panels.resize(panels * bytes + 64);
  packed.scales.resize(panels * kPanelOutputs);
  for (std::size_t i = 0; i < panels; ++i) {
    const std::size_t first = i * kPanelOutputs;
    const PanelSource source{values.data() + first * inputs, inputs, 1,
                             std::min(kPanelOutputs, outputs - first), inputs};
    pack_panel(type, source, packed.panels.data() + i * bytes, packed.scales.data() + first);
  }
  packed.weight = {type, outputs, inputs, packed.panels.data(), packed.scales.data()};
  return packed;
}

// Rows prepared for a product, and what they stand for.
struct Prepared {
  std::vector<std::byte> data;
  Floats scales;
  std::vector<std::int32_t> sums;
  PreparedRows rows;
  std::size_t inputs, bfloat16_bytes;

  float value(std::size_t row, std::size_t k) const {
    const std::byte* at = rows.data + row * rows.row_bytes;
    const bool pairs = rows.type == WeightType::kBfloat16;
    if (rows.type == WeightType::kFloat32 || (pairs && bfloat16_bytes == sizeof(float)))
      return reinterpret_cast<const float*>(at)[k];
    if (pairs) return from_bfloat16(reinterpret_cast<const std::uint16_t*>(at)[k]);
    const std::size_t in_row = scales_in_row(rows.type, inputs);
    const float scale = scales[row * in_row + k / (rows.type == WeightType::kInt8 ? kByteGroup : kGroup)];
    return static_cast<float>(reinterpret_cast<const signed char*>(at)[k]) * scale;
  }
};

Prepared prepare(const InferenceKernels& kernels, WeightType type, const Preparation& what,
                 std::size_t rows) {
  Prepared prepared;
  prepared.inputs = what.width;
  prepared.bfloat16_bytes = kernels.bfloat16_bytes;
  const std::size_t bytes = kernels.row_bytes(type, what.width);
  prepared.data.resize(rows * bytes + 64);
  prepared.scales.resize(rows * scales_in_row(type, what.width) + 1);
  prepared.sums.resize(rows * sums_in_row(type, what.width) + 1);
  prepared.rows = {type, prepared.data.data(), bytes, prepared.scales.data(), prepared.sums.data()};
  kernels.prepare(what, prepared.rows, 0, rows);
  return prepared;
}

// The largest difference from sums in double of what the weight and the rows stand for.
double product_error(const InferenceKernels& kernels, const PackedWeight& weight, std::size_t rows,
                     bool adds) {
  const std::size_t outputs = weight.outputs, inputs = weight.inputs;
  const Floats x = random_floats(rows * inputs, 2), bias = random_floats(outputs, 3);
  const Floats before = random_floats(rows * outputs, 4);
  Floats result = before;
  const Prepared prepared =
      prepare(kernels, weight.type, {.input = x.data(), .input_row = inputs, .width = inputs}, rows);
  const PackedProduct product{.weight = &weight,
                              .rows = prepared.rows,
                              .row_count = rows,
                              .result = result.data(),
                              .result_row = outputs,
                              .bias = bias.data(),
                              .adds = adds};
  const std::size_t middle = outputs / 32 * 16;  // in two parts, as two threads do
  kernels.multiply(product, middle, outputs);
  kernels.multiply(product, 0, middle);
  const Floats weights = unpacked(weight);
  double worst = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t j = 0; j < outputs; ++j) {
      double sum = bias[j] + (adds ? before[r * outputs + j] : 0.0F);
      for (std::size_t k = 0; k < inputs; ++k) {
        sum += static_cast<double>(prepared.value(r, k)) * weights[j * inputs + k];
      }
      worst =
          std::max(worst, std::fabs(sum - result[r * outputs + j]) / std::sqrt(static_cast<double>(inputs)));
    }
  }
  return worst;
}

double product_error(const InferenceKernels& kernels, WeightType type, std::size_t rows, std::size_t outputs,
                     std::size_t inputs, bool adds) {
  return product_error(kernels, pack(type, random_floats(outputs * inputs, 1), outputs, inputs).weight, rows,
                       adds);
}

// A weight of random blocks, a panel of each format.
struct Blocks {
  std::vector<std::uint8_t> numbers;
  Floats scales, minimums;  // that float16 holds
  std::vector<std::byte> panels;
  std::vector<BlockPanel> places;
  PackedWeight weight;

  float value(std::size_t j, std::size_t k) const {
    const std::size_t i = j * weight.inputs + k;
    return scales[i / kRun] * numbers[i] - minimums[i / kRun];
  }
};

constexpr BlockFormat kFormats[] = {BlockFormat::kRuns,           BlockFormat::kNibbles,
                                    BlockFormat::kBytes,          BlockFormat::kFiveBits,
                                    BlockFormat::kNibblesMinimum, BlockFormat::kSixBits};

// Writes rows of one format into the blocks.
void draw_rows(BlockFormat format, std::size_t first, std::size_t last, std::mt19937& generator,
               Blocks& blocks) {
  const std::size_t inputs = blocks.weight.inputs;
  const bool runs = format == BlockFormat::kRuns || format == BlockFormat::kSixBits;
  const float zero = format == BlockFormat::kNibbles   ? 8.0F
                     : format == BlockFormat::kBytes   ? 128.0F
                     : format == BlockFormat::kSixBits ? 32.0F
                                                       : 0.0F;  // any minimum
  const unsigned numbers = format == BlockFormat::kSixBits                                 ? 64
                           : format == BlockFormat::kFiveBits                              ? 32
                           : format == BlockFormat::kRuns || format == BlockFormat::kBytes ? 256
                                                                                           : 16;
  // 11 bits times a power of two: float16's, of which some are denormal.
  const auto drawn = [&] {
    const int sign = generator() % 2 == 0 ? 1 : -1;
    return std::ldexp(static_cast<float>(sign * static_cast<int>(generator() % 2048)),
                      -24 + static_cast<int>(generator() % 8));
  };
  for (std::size_t i = first * inputs; i < last * inputs; ++i) {
    blocks.numbers[i] = static_cast<std::uint8_t>(generator() % numbers);
    if (i % kRun != 0) continue;
    float &scale = blocks.scales[i / kRun], &minimum = blocks.minimums[i / kRun];
    const bool begins = runs || i % kGroup == 0;
    scale = begins ? drawn() : (&scale)[-1];
    minimum = zero > 0 ? zero * scale : begins ? drawn() : (&minimum)[-1];
  }
}

Blocks random_blocks(std::size_t outputs, std::size_t inputs) {
  Blocks blocks;
  blocks.numbers.resize(outputs * inputs);
  blocks.scales.resize(outputs * inputs / kRun);
  blocks.minimums.resize(outputs * inputs / kRun);
  blocks.panels.resize(panel_count(outputs) * panel_bytes(BlockFormat::kRuns, inputs) + 64);
  blocks.weight = {.type = WeightType::kBlocks, .outputs = outputs, .inputs = inputs};
  std::mt19937 generator(11);
  std::byte* panel = blocks.panels.data();
  for (std::size_t first = 0; first < outputs; first += kPanelOutputs) {
    const BlockFormat format = kFormats[first / kPanelOutputs];
    const std::size_t last = std::min(first + kPanelOutputs, outputs);
    draw_rows(format, first, last, generator, blocks);
    const BlockSource source{blocks.numbers.data() + first * inputs,
                             blocks.scales.data() + first * inputs / kRun,
                             blocks.minimums.data() + first * inputs / kRun, last - first, inputs};
    CHECK(pack_block_panel(format, source, panel));
    blocks.places.push_back({format, panel});
    panel += panel_bytes(format, inputs);
  }
  blocks.weight.blocks = blocks.places.data();
  return blocks;
}

double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

}  // namespace

FOR_EVERY_INSTRUCTION_SET("Every instruction set multiplies packed weights of every type") {
  ZOO_NEEDS(find_kernels(Set) != nullptr, name_of(Set));
  const InferenceKernels* kernels = find_kernels(Set);
  REQUIRE(kernels != nullptr);
  for (const auto type :
       {WeightType::kFloat32, WeightType::kBfloat16, WeightType::kInt8, WeightType::kInt4}) {
    for (const std::size_t rows : {1, 2, 3, 4, 6, 9, 17}) {
      CAPTURE(static_cast<int>(type), rows);
      CHECK(product_error(*kernels, type, rows, 100, 70, false) < 2e-6);
      CHECK(product_error(*kernels, type, rows, 33, 33, true) < 2e-6);
    }
    CAPTURE(static_cast<int>(type));
    CHECK(product_error(*kernels, type, 7, 64, 2100, true) < 5e-6);  // deeper than a part of a panel
    CHECK(product_error(*kernels, type, 20, 80, 2100, false) < 5e-6);
  }
}

namespace {

// Of random rows by a random weight [100, 198].
Floats products(const InferenceKernels& kernels, WeightType type, std::size_t rows, std::size_t row_count) {
  constexpr std::size_t kOutputs = 100, kInputs = 198;
  const Packed packed = pack(type, random_floats(kOutputs * kInputs, 1), kOutputs, kInputs);
  const Floats x = random_floats(rows * kInputs, 2), bias = random_floats(kOutputs, 3);
  const Prepared prepared =
      prepare(kernels, type, {.input = x.data(), .input_row = kInputs, .width = kInputs}, rows);
  Floats result(rows * kOutputs);
  for (std::size_t row = 0; row < rows; row += row_count) {
    PreparedRows some = prepared.rows;
    some.data += row * some.row_bytes;
    some.scales += row * scales_in_row(type, kInputs);
    some.sums += row * sums_in_row(type, kInputs);
    kernels.multiply({.weight = &packed.weight,
                      .rows = some,
                      .row_count = std::min(row_count, rows - row),
                      .result = result.data() + row * kOutputs,
                      .result_row = kOutputs,
                      .bias = bias.data()},
                     0, kOutputs);
  }
  return result;
}

}  // namespace

FOR_EVERY_INSTRUCTION_SET("A row's product has the same bits beside any other rows") {
  ZOO_NEEDS(find_kernels(Set) != nullptr, name_of(Set));
  const InferenceKernels* kernels = find_kernels(Set);
  REQUIRE(kernels != nullptr);
  for (const auto type :
       {WeightType::kFloat32, WeightType::kBfloat16, WeightType::kInt8, WeightType::kInt4}) {
    const Floats alone = products(*kernels, type, 37, 1);
    for (const std::size_t rows : {3, 7, 16, 37}) {
      CAPTURE(static_cast<int>(type), rows);
      CHECK((products(*kernels, type, 37, rows) == alone));
    }
  }
}

#if defined(__x86_64__)
TEST_CASE("AMX as it is emulated has the bits of other CPUs in int8, and of CPUs with AMX in bfloat16") {
  const InferenceKernels *other = find_inference_kernels(InstructionSet::kAvx2),
                         *real = find_inference_kernels(InstructionSet::kAmxBf16);
  ZOO_NEEDS(other != nullptr, "avx2");
  CHECK((products(emulated_amx::kernels, WeightType::kInt8, 37, 37) ==
         products(*other, WeightType::kInt8, 37, 37)));
  if (real == nullptr) return;
  for (const auto type : {WeightType::kBfloat16, WeightType::kInt8})
    CHECK((products(emulated_amx::kernels, type, 37, 37) == products(*real, type, 37, 37)));
}
#endif

FOR_EVERY_INSTRUCTION_SET("Every instruction set multiplies a file's blocks of every format") {
  ZOO_NEEDS(find_kernels(Set) != nullptr, name_of(Set));
  const InferenceKernels* kernels = find_kernels(Set);
  REQUIRE(kernels != nullptr);
  const Blocks few = random_blocks(6 * kPanelOutputs - 23, 96), deep = random_blocks(6 * kPanelOutputs, 2048);
  for (const std::size_t rows : {1, 2, 3, 4, 6, 9, 17, 30}) {
    CAPTURE(rows);
    CHECK(product_error(*kernels, few.weight, rows, rows % 2 == 0) < 2e-6);
  }
  CHECK(product_error(*kernels, deep.weight, 1, true) < 5e-6);
  CHECK(product_error(*kernels, deep.weight, 7, false) < 5e-6);
  CHECK(product_error(*kernels, deep.weight, 31, true) < 5e-6);  // numbers are taken apart once for so many
}

TEST_CASE("Blocks of every format are kept as they are") {
  const Blocks blocks = random_blocks(6 * kPanelOutputs - 23, 96);
  const Floats weights = unpacked(blocks.weight);
  std::size_t different = 0;
  for (std::size_t j = 0; j < blocks.weight.outputs; ++j)
    for (std::size_t k = 0; k < blocks.weight.inputs; ++k)
      different += weights[j * blocks.weight.inputs + k] != blocks.value(j, k);
  CHECK(different == 0);
}

TEST_CASE("Scales of blocks are rounded to float16 with their zero points, and refused if they do not fit") {
  // 1 + 2^-12 is between two numbers of float16, and so is 3.3 of its smallest, whose 32-fold is nearer to
  // 106.
  const float scale = GENERATE(1.00024414F, 3.3F * 0x1p-24F);
  std::vector<std::uint8_t> numbers(kGroup, 35);
  numbers[7] = 32;
  const Floats scales(2, scale), zeros(2, 32 * scale), large(2, 65520.0F), nan(2, NAN);
  std::vector<std::byte> panel(panel_bytes(BlockFormat::kRuns, kGroup));
  const auto packed = [&](const Floats& minimums, const Floats& steps) {
    return pack_block_panel(BlockFormat::kRuns, {numbers.data(), steps.data(), minimums.data(), 1, kGroup},
                            panel.data());
  };
  const BlockPanel place{BlockFormat::kRuns, panel.data()};
  const PackedWeight weight{.type = WeightType::kBlocks, .outputs = 1, .inputs = kGroup, .blocks = &place};
  REQUIRE(packed(zeros, scales));
  CHECK(std::fabs(unpacked(weight)[5] / 3 - scale) <= std::max(scale * 0x1p-11F, 0x1p-25F));
  CHECK(unpacked(weight)[7] == 0);
  CHECK_FALSE(packed(large, scales));
  CHECK_FALSE(packed(zeros, large));
  CHECK_FALSE(packed(nan, scales));
  CHECK(packed(zeros, Floats(2, 65504.0F)));
}

FOR_EVERY_INSTRUCTION_SET("A product activates its results") {
  ZOO_NEEDS(find_kernels(Set) != nullptr, name_of(Set));
  const InferenceKernels* kernels = find_kernels(Set);
  REQUIRE(kernels != nullptr);
  const Packed packed = pack(WeightType::kFloat32, {1, 2, 3, 4, 5, 6}, 3, 2);
  const Floats x{0.5F, -0.25F};
  const Prepared prepared =
      prepare(*kernels, WeightType::kFloat32, {.input = x.data(), .input_row = 2, .width = 2}, 1);
  Floats result(3);
  kernels->multiply({.weight = &packed.weight,
                     .rows = prepared.rows,
                     .row_count = 1,
                     .result = result.data(),
                     .result_row = 3,
                     .pointwise = Pointwise::kGeluTanh},
                    0, 3);
  // The products are 0, 0.5 and 1.
  CHECK(result[0] == 0);
  CHECK(result[1] == Approx(gelu_tanh(0.5)).epsilon(1e-6));
  CHECK(result[2] == Approx(gelu_tanh(1)).epsilon(1e-6));
}

namespace {

// The nearest number with 5 significant bits.
double with_five_bits(double value) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return std::ldexp(std::round(std::ldexp(fraction, 5)), exponent - 5);
}

// A weight in the steps of a group from its least to its greatest, or zero, with the zero point on a step.
double between_ends(const float* group, std::size_t k) {
  double low = 0, high = 0;
  for (std::size_t i = 0; i < kGroup; ++i) {
    low = std::min(low, static_cast<double>(group[i]));
    high = std::max(high, static_cast<double>(group[i]));
  }
  const double step = with_five_bits((high - low) / 15), zero = std::round(-low / step);
  return (std::clamp(std::round(group[k] / step + zero), 0.0, 15.0) - zero) * step;
}

}  // namespace

TEST_CASE("Weights of 8 and 4 bits are the nearest of their steps") {
  Floats values = random_floats(2 * 64, 5);
  for (std::size_t k = 32; k < 64; ++k) values[k] = 0.1F + std::fabs(values[k]);  // all above zero
  const Packed eight = pack(WeightType::kInt8, values, 2, 64), four = pack(WeightType::kInt4, values, 2, 64);
  const Floats of_eight = unpacked(eight.weight), of_four = unpacked(four.weight);
  for (std::size_t j = 0; j < 2; ++j) {
    float largest = 0;
    for (std::size_t k = 0; k < 64; ++k) largest = std::max(largest, std::fabs(values[j * 64 + k]));
    for (std::size_t k = 0; k < 64; ++k) {
      CHECK(std::fabs(of_eight[j * 64 + k] - values[j * 64 + k]) <= largest / 254 * 1.0001F);
      // No other weight of the group lies on a nearer step.
      for (std::size_t i = k / kGroup * kGroup; i < (k / kGroup + 1) * kGroup; ++i)
        CHECK(std::fabs(of_four[j * 64 + k] - values[j * 64 + k]) <=
              std::fabs(of_four[j * 64 + i] - values[j * 64 + k]));
    }
    for (std::size_t first = 0; first < 64; first += kGroup) {
      double found = 0, plain = 0;
      const float* group = values.data() + j * 64 + first;
      for (std::size_t k = 0; k < kGroup; ++k) {
        found += std::pow(of_four[j * 64 + first + k] - group[k], 2);
        plain += std::pow(between_ends(group, k) - group[k], 2);
      }
      CHECK(found <= plain * (1 + 1e-6));
    }
  }
  const Packed zero = pack(WeightType::kInt4, Floats(64, 0.0F), 1, 64);
  CHECK(unpacked(zero.weight)[7] == 0);
  CHECK(unpacked(pack(WeightType::kInt8, Floats(64, 0.0F), 1, 64).weight)[7] == 0);
}

FOR_EVERY_INSTRUCTION_SET("An input that is much larger than the others costs only its group their digits") {
  ZOO_NEEDS(find_kernels(Set) != nullptr, name_of(Set));
  const InferenceKernels* kernels = find_kernels(Set);
  REQUIRE(kernels != nullptr);
  constexpr std::size_t kInputs = 2 * kByteGroup + 21;
  Floats x = random_floats(kInputs, 8);
  x[3] = 1000;
  const Prepared rows =
      prepare(*kernels, WeightType::kInt8, {.input = x.data(), .input_row = kInputs, .width = kInputs}, 1);
  CHECK(rows.value(0, 3) == Approx(1000));
  for (std::size_t first = kByteGroup; first < kInputs; first += kByteGroup) {
    const std::size_t last = std::min(first + kByteGroup, kInputs);
    float largest = 0;
    for (std::size_t k = first; k < last; ++k) largest = std::max(largest, std::fabs(x[k]));
    for (std::size_t k = first; k < last; ++k)
      CHECK(std::fabs(rows.value(0, k) - x[k]) <= largest / 254 * 1.0001F);
  }
}

FOR_EVERY_INSTRUCTION_SET("Rows are normalised and gated on their way into a product") {
  ZOO_NEEDS(find_kernels(Set) != nullptr, name_of(Set));
  const InferenceKernels* kernels = find_kernels(Set);
  REQUIRE(kernels != nullptr);
  // Mean 2.5, variance 1.25; mean of squares 7.5.
  const Floats x{1, 2, 3, 4}, weight{1, 1, 2, 2}, bias{0, 1, 0, 1};
  Preparation what{.input = x.data(), .input_row = 4, .width = 4, .norm = Normalization::kLayer};
  what.norm_weight = weight.data();
  what.norm_bias = bias.data();
  const Prepared layer = prepare(*kernels, WeightType::kFloat32, what, 1);
  const double unit = 1 / std::sqrt(1.25);
  CHECK(layer.value(0, 0) == Approx(-1.5 * unit));
  CHECK(layer.value(0, 1) == Approx(-0.5 * unit + 1));
  CHECK(layer.value(0, 3) == Approx(3 * unit + 1));
  what.norm = Normalization::kRms;
  what.norm_bias = nullptr;
  const Prepared rms = prepare(*kernels, WeightType::kFloat32, what, 1);
  CHECK(rms.value(0, 2) == Approx(6 / std::sqrt(7.5)));
  const Prepared gated =
      prepare(*kernels, WeightType::kFloat32,
              {.input = x.data(), .input_row = 4, .width = 2, .gate = Pointwise::kSilu}, 1);
  CHECK(gated.value(0, 0) == Approx(3 / (1 + std::exp(-1.0))));
  CHECK(gated.value(0, 1) == Approx(8 / (1 + std::exp(-2.0))));
}
