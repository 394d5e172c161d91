#include "models/kernels/cpu.h"

#include <cstdlib>

#include <ATen/ops/randn.h>

#include "data/base/error.h"
#include "models/kernels/attention/short_attention.h"
#include "models/kernels/linear.h"
#include "models/kernels/norm.h"
#include "tests/support/catch.h"

using namespace zoo::kernels;

TEST_CASE("ZOO_KERNELS names an instruction set, or leaves the CPU's best") {
  const InstructionSet best = InstructionSet::kAvx512Bf16;
  CHECK(choose_instruction_set("", best) == best);
  CHECK(choose_instruction_set("", InstructionSet::kPortable) == InstructionSet::kPortable);
  CHECK(choose_instruction_set("portable", best) == InstructionSet::kPortable);
  CHECK(choose_instruction_set("avx2", best) == InstructionSet::kAvx2);
  CHECK(choose_instruction_set("avx512", best) == InstructionSet::kAvx512);
  CHECK(choose_instruction_set("avx512_bf16", best) == best);
  CHECK(choose_instruction_set("avx2", InstructionSet::kAvx2) == InstructionSet::kAvx2);
}

TEST_CASE("A value of ZOO_KERNELS that names no instruction set is an error that lists them") {
  const std::string expected = "; expected portable, avx2, avx512 or avx512_bf16";
  for (const std::string wanted : {"avx3", "AVX2", "avx512 ", "av"}) {
    CHECK_THROWS_WITH(choose_instruction_set(wanted, InstructionSet::kAvx512Bf16),
                      Catch::Contains("ZOO_KERNELS=" + wanted + " ") && Catch::EndsWith(expected));
  }
}

TEST_CASE("A value of ZOO_KERNELS above the CPU's best is an error that names both") {
  CHECK_THROWS_WITH(
      choose_instruction_set("avx512", InstructionSet::kAvx2),
      Catch::Contains("ZOO_KERNELS=avx512") && Catch::EndsWith("the best that it runs is avx2"));
  CHECK_THROWS_AS(choose_instruction_set("avx2", InstructionSet::kPortable), zoo::Error);
}

// ctest runs this with ZOO_KERNELS=portable and avx2 too.
TEST_CASE("Training kernels run only with the instruction sets that they need") {
  const char* wanted = std::getenv("ZOO_KERNELS");
  const InstructionSet set = choose_instruction_set(wanted != nullptr ? wanted : "", cpu_instruction_set());
  CHECK(instruction_set() == set);
  CHECK(has_training_kernels() == (set >= InstructionSet::kAvx512));
  CHECK(has_bfloat16_products() == (set == InstructionSet::kAvx512Bf16));
  const at::Tensor x = at::randn({16, 12}), weight = at::randn({3, 12});
  CHECK(has_fast_linear(x, weight) == has_training_kernels());
  CHECK(has_fast_norm(x, weight[0]) == has_training_kernels());
  CHECK(zoo::kernels::has_short_attention(at::randn({1, 16, 12})) == has_training_kernels());
}
