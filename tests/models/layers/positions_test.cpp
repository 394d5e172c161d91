#include "models/layers/attention/positions.h"

#include <cmath>
#include <complex>

#include "tests/models/support.h"
#include "tests/support/catch.h"

using namespace zoo;
using zoo::test::largest_difference;

TEST_CASE("sinusoidal positions are the numbers of the formula") {
  const at::Tensor table = sinusoidal_positions(50, 4);
  REQUIRE(table.sizes() == at::IntArrayRef({50, 4}));
  // The second pair turns 100 times slower: 10000^(2/4).
  CHECK(largest_difference(table[0], at::tensor({0.0, 1.0, 0.0, 1.0})) == 0);
  // sin 1, cos 1, sin 0.01, cos 0.01
  CHECK(largest_difference(table[1], at::tensor({0.8414709848, 0.5403023059, 0.0099998333, 0.9999500004})) <
        1e-6);
  // sin 7, cos 7, sin 0.07, cos 0.07
  CHECK(largest_difference(table[7], at::tensor({0.6569865987, 0.7539022543, 0.0699428473, 0.9975510003})) <
        1e-6);
  for (const std::int64_t p : {3, 31, 49}) {
    CHECK(table[p][3].item<double>() == Approx(std::cos(p / 100.0)).margin(1e-6));
  }
  // sin 7, sin 0.07, cos 7, cos 0.07
  const at::Tensor halves = sinusoidal_positions(50, 4, SinusoidOrder::kHalves);
  CHECK(largest_difference(halves[7], at::tensor({0.6569865987, 0.0699428473, 0.7539022543, 0.9975510003})) <
        1e-6);
  CHECK_THAT(test::c10_error_of([] { sinusoidal_positions(4, 5); }),
             Catch::Contains("even hidden_size, got 5"));
}

TEST_CASE("rotary positions turn the pair (i, i + D/2) as a complex number") {
  constexpr std::int64_t kDim = 6;
  constexpr double kTheta = 1000.0;
  at::manual_seed(3);
  const at::Tensor x = at::randn({1, 1, 3, kDim});
  const std::vector<std::int64_t> positions{0, 4, 11};
  const at::Tensor turned = RotaryTable::make(at::tensor(positions), kDim, kTheta).rotate(x);
  for (std::int64_t t = 0; t < 3; ++t) {
    for (std::int64_t i = 0; i < kDim / 2; ++i) {
      const auto at_index = [&](const at::Tensor& tensor, std::int64_t d) {
        return tensor[0][0][t][d].item<double>();
      };
      const std::complex<double> pair(at_index(x, i), at_index(x, i + kDim / 2));
      const double angle =
          static_cast<double>(positions[t]) * std::pow(kTheta, -2.0 * static_cast<double>(i) / kDim);
      const std::complex<double> expected = pair * std::polar(1.0, angle);
      CHECK(at_index(turned, i) == Approx(expected.real()).margin(1e-5));
      CHECK(at_index(turned, i + kDim / 2) == Approx(expected.imag()).margin(1e-5));
    }
  }
}

TEST_CASE("the product of a turned query and a turned key depends on their distance alone") {
  at::manual_seed(4);
  const at::Tensor q = at::randn({1, 1, 1, 16}), k = at::randn({1, 1, 1, 16});
  const auto turned = [](const at::Tensor& x, std::int64_t position) {
    return RotaryTable::make(at::tensor({position}), 16, 10000.0).rotate(x);
  };
  const auto score = [&](std::int64_t m, std::int64_t n) {
    return (turned(q, m) * turned(k, n)).sum().item<double>();
  };
  CHECK(score(9, 4) == Approx(score(5, 0)).margin(1e-4));
  CHECK(score(105, 100) == Approx(score(5, 0)).margin(1e-4));
  CHECK(std::abs(score(6, 0) - score(5, 0)) > 1e-2);
  CHECK(std::abs(score(0, 5) - score(5, 0)) > 1e-2);
  // A rotation keeps lengths.
  CHECK(turned(q, 77).norm().item<double>() == Approx(q.norm().item<double>()).epsilon(1e-5));
}

TEST_CASE("linear scaling of rotary positions divides every angle") {
  const RopeScaling scaling{.kind = RopeScalingKind::kLinear, .factor = 4.0};
  const at::Tensor x = at::randn({1, 1, 3, 8});
  const at::Tensor scaled = RotaryTable::make(at::tensor({0, 4, 12}), 8, 100.0, scaling).rotate(x);
  CHECK(largest_difference(scaled, RotaryTable::make(at::tensor({0, 1, 3}), 8, 100.0).rotate(x)) < 1e-6);
}

TEST_CASE("Llama 3's scaling keeps fast angles, divides slow ones and passes smoothly between them") {
  // theta^(-2i / D) is 1, 1/10, 1/100, 1/1000: over 100 positions 15.9, 1.59, 0.159 and 0.0159 turns.
  const RopeScaling scaling{.kind = RopeScalingKind::kLlama3,
                            .factor = 8.0,
                            .low_frequency_factor = 1.0,
                            .high_frequency_factor = 3.0,
                            .original_max_positions = 100};
  const at::Tensor table = RotaryTable::make(at::tensor({1}), 8, 10000.0, scaling).sin[0];
  const double turns = 100 * 0.1 / (2 * M_PI), kept = (turns - 1) / (3 - 1);
  CHECK(table[0].item<double>() == Approx(std::sin(1.0)));
  CHECK(table[1].item<double>() == Approx(std::sin(0.1 * kept + 0.1 / 8 * (1 - kept))));
  CHECK(table[2].item<double>() == Approx(std::sin(0.01 / 8)));
  CHECK(table[3].item<double>() == Approx(std::sin(0.001 / 8)));
}

TEST_CASE("rotary positions of their own for each row of a batch") {
  at::manual_seed(5);
  const at::Tensor x = at::randn({2, 3, 4, 8});
  const at::Tensor positions = at::tensor({0, 1, 2, 3, 5, 6, 7, 8}, at::kLong).view({2, 4});
  const at::Tensor turned = RotaryTable::make(positions, 8, 10000.0).rotate(x);
  for (std::int64_t b = 0; b < 2; ++b) {
    const at::Tensor alone = RotaryTable::make(positions[b], 8, 10000.0).rotate(x.slice(0, b, b + 1));
    CHECK(at::equal(turned.slice(0, b, b + 1), alone));
  }
  CHECK_THAT(test::c10_error_of([&] { RotaryTable::make(positions, 7, 10000.0); }),
             Catch::Contains("head_dim, got 7"));
}
