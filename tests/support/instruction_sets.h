#pragma once

#include "models/kernels/cpu.h"

/// Begins a test that calls kernels of `set`. Where the CPU or ZOO_KERNELS allows only a lesser set, the test
/// says so and ends; ctest knows the words (SKIP_REGULAR_EXPRESSION) and lists it as skipped. Nothing may be
/// checked before, because ctest forgives what fails in a skipped test.
#define ZOO_NEEDS(set)                                                                  \
  if (zoo::kernels::instruction_set() < (set)) {                                        \
    WARN("SKIPPED: needs " << zoo::kernels::name_of(set) << ", the kernels in use are " \
                           << zoo::kernels::name_of(zoo::kernels::instruction_set()));  \
    return;                                                                             \
  }                                                                                     \
  static_assert(true)

/// Begins a test of the training kernels, which are written for AVX-512.
#define ZOO_NEEDS_TRAINING_KERNELS ZOO_NEEDS(zoo::kernels::InstructionSet::kAvx512)

/// Begins a test of the training kernels of mixed precision.
#define ZOO_NEEDS_BFLOAT16_PRODUCTS ZOO_NEEDS(zoo::kernels::InstructionSet::kAvx512Bf16)
