#pragma once

#include "models/kernels/cpu.h"

/// Begins a test of kernels that some CPUs, or ZOO_KERNELS, leave out: there the test says so and ends; ctest
/// knows the words (SKIP_REGULAR_EXPRESSION) and lists it as skipped. Nothing may be checked before, because
/// ctest forgives what fails in a skipped test.
#define ZOO_NEEDS(has, what)                                                           \
  if (!(has)) {                                                                        \
    WARN("SKIPPED: needs " << (what) << ", the kernels in use are "                    \
                           << zoo::kernels::name_of(zoo::kernels::instruction_set())); \
    return;                                                                            \
  }                                                                                    \
  static_assert(true)

#define ZOO_NEEDS_TRAINING_KERNELS ZOO_NEEDS(zoo::kernels::has_training_kernels(), "training kernels")

#define ZOO_NEEDS_BFLOAT16_PRODUCTS ZOO_NEEDS(zoo::kernels::has_bfloat16_products(), "products of bfloat16")
