#pragma once

#include <cstddef>
#include <random>
#include <vector>

#include "models/kernels/packed/inference_kernels.h"
#include "tests/support/catch.h"
#include "tests/support/instruction_sets.h"

#if defined(__x86_64__)
namespace zoo::kernels::emulated_amx {
extern const InferenceKernels kernels;
}
#endif

namespace zoo::test {

/// Kernels of this set, or nullptr if it does not run. AMX, which few machines have, is emulated elsewhere.
inline const kernels::InferenceKernels* find_kernels(kernels::InstructionSet set) {
  const auto* found = kernels::find_inference_kernels(set);
#if defined(__x86_64__)
  if (found == nullptr && set == kernels::InstructionSet::kAmxBf16 &&
      kernels::find_inference_kernels(kernels::InstructionSet::kAvx2) != nullptr)
    return &kernels::emulated_amx::kernels;
#endif
  return found;
}

using Floats = std::vector<float>;

inline Floats random_floats(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  Floats values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

}  // namespace zoo::test

// A test for each instruction set, named after it, so that one that does not run is listed by itself.
#if defined(__aarch64__)
#define FOR_EVERY_INSTRUCTION_SET(name)                                                    \
  TEMPLATE_TEST_CASE_SIG(name, "", ((InstructionSet Set), Set), InstructionSet::kPortable, \
                         InstructionSet::kNeon, InstructionSet::kNeonBf16)
#else
#define FOR_EVERY_INSTRUCTION_SET(name)                                                            \
  TEMPLATE_TEST_CASE_SIG(name, "", ((InstructionSet Set), Set), InstructionSet::kPortable,         \
                         InstructionSet::kAvx2, InstructionSet::kAvxVnni, InstructionSet::kAvx512, \
                         InstructionSet::kAvx512Bf16, InstructionSet::kAmxBf16)
#endif
