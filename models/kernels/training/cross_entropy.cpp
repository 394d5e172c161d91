#include <cmath>

#include "models/kernels/elementary.h"
#include "models/kernels/training/rows.h"

namespace zoo::kernels::ZOO_KERNELS_FOR {
namespace {

struct Totals {
  float largest;
  double exponentials, logits;  // sums of e^(logit - largest) and of the logits
};

double sum_of(const Lanes& lanes, std::size_t count) {
  float each[kLanes];
  store(each, lanes);
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += static_cast<double>(each[i]);
  return sum;
}

Totals totals_of(const LogitsRow& row) {
  Lanes largest = all(row.logits[0]);
  for_each_vector(row.classes, [&](std::size_t j, const auto& read, const auto&) {
    const Lanes x = read(row.logits + j);
    const IntegerLanes past = numbers_from(0) >= static_cast<std::int32_t>(row.classes - j);
    largest = larger(select(past, all(row.logits[0]), x), largest);
  });
  Totals totals{largest_of(largest), 0, 0};
  // Sums a few thousand in float32, and their total in double.
  constexpr std::size_t kBlock = 4096;
  for (std::size_t first = 0; first < row.classes; first += kBlock) {
    const float* block = row.logits + first;
    const std::size_t size = smaller(row.classes - first, kBlock);
    Lanes exponentials = {}, logits = {};
    for_each_vector(size, [&](std::size_t j, const auto& read, const auto&) {
      const Lanes x = read(block + j);
      const Lanes e = exponential(x - totals.largest);
      logits += x;  // zeros past the end
      if (j + kLanes <= size) {
        exponentials += e;
      } else {
        totals.exponentials += sum_of(e, size - j);
      }
    });
    totals.exponentials += sum_of(exponentials, kLanes);
    totals.logits += sum_of(logits, kLanes);
  }
  return totals;
}

double loss_of(const LogitsRow& row, const Totals& totals) {
  const double log_sum = static_cast<double>(totals.largest) + std::log(totals.exponentials);
  const double smoothing = row.smoothing, mean = totals.logits / static_cast<double>(row.classes);
  return log_sum - (1.0 - smoothing) * static_cast<double>(row.logits[row.target]) - smoothing * mean;
}

}  // namespace

double cross_entropy(const LogitsRow& row) { return loss_of(row, totals_of(row)); }

double cross_entropy_with_gradient(const LogitsRow& row, float scale) {
  const Totals totals = totals_of(row);
  const double loss = loss_of(row, totals);
  const auto factor = static_cast<float>(static_cast<double>(scale) / totals.exponentials);
  const float shared = scale * row.smoothing / static_cast<float>(row.classes);
  for_each_vector(row.classes, [&](std::size_t j, const auto& read, const auto& write) {
    write(row.logits + j, exponential(read(row.logits + j) - totals.largest) * factor - shared);
  });
  row.logits[row.target] -= scale * (1.0F - row.smoothing);
  return loss;
}

}  // namespace zoo::kernels::ZOO_KERNELS_FOR
