#include "models/kernels/training/adamw.h"

#include "models/kernels/vector.h"

namespace zoo::kernels::ZOO_KERNELS_FOR {

void adamw(const AdamWUpdate& update, const AdamWWeights& w, std::size_t size) {
  const float factor = 1.0F / update.divisor;
  for_each_vector(size, [&](std::size_t i, const auto& read, const auto& write) {
    const Lanes g = read(w.gradient + i) * factor;
    Lanes m = read(w.exp_avg + i), v = read(w.exp_avg_sq + i);
    m += update.one_minus_beta1 * (g - m);
    v = update.beta2 * v + update.one_minus_beta2 * (g * g);
    write(w.exp_avg + i, m);
    write(w.exp_avg_sq + i, v);
    const Lanes step = update.step_size * m / (square_root(v) * update.square_scale + update.eps);
    const Lanes weight = read(w.weight + i);
    const Lanes kept =
        update.cautious ? select(step * weight < 0.0F, all(1.0F), all(update.kept)) : all(update.kept);
    write(w.weight + i, weight * kept - step);
  });
}

double sum_of_squares(const float* x, std::size_t size) {
  constexpr std::size_t kBlock = 4096;
  double total = 0;
  for (std::size_t first = 0; first < size; first += kBlock) {
    Lanes sums = {};
    for_each_vector(smaller(size - first, kBlock), [&](std::size_t i, const auto& read, const auto&) {
      const Lanes value = read(x + first + i);
      sums += value * value;
    });
    float each[kLanes];
    store(each, sums);
    for (const float sum : each) total += static_cast<double>(sum);
  }
  return total;
}

}  // namespace zoo::kernels::ZOO_KERNELS_FOR
