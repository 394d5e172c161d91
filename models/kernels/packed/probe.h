// Work that nothing but the machine limits, for benchmarks (inference_kernels.h: InferenceKernels).

constexpr std::size_t kChains = 12;  // two units, each with a result four or five cycles later

// Every chain depends on itself alone, so that the units always have the next one to begin.
inline double multiply_add(std::size_t rounds, float* result) {
  Register sums[kChains];
  for (std::size_t i = 0; i < kChains; ++i) sums[i] = static_cast<float>(i) - Register{};
  const Register factor = 0.5F - Register{}, term = 1.0F - Register{};
  for (std::size_t round = 0; round < rounds; ++round)
    for (Register& sum : sums) sum = sum * factor + term;
  Register all = {};
  for (const Register& sum : sums) all += sum;
  store(result, all);
  return 2.0 * static_cast<double>(rounds * kChains * kRegisterLanes);
}

inline std::uint64_t read_words(const std::byte* data, std::size_t bytes) {
  constexpr std::size_t kStep = 4 * sizeof(WordRegister);
  WordRegister sums[4] = {};
  for (std::size_t at = 0; at + kStep <= bytes; at += kStep)
    for (std::size_t i = 0; i < 4; ++i) sums[i] += load<WordRegister>(data + at + i * sizeof(WordRegister));
  const WordRegister all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kRegisterLanes; ++i) sum += all[i];
  return sum;
}
