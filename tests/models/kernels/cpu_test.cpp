#include "models/kernels/cpu.h"

#include <cstdlib>

#include <ATen/autocast_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/randn.h>

#include "data/base/error.h"
#include "models/kernels/attention/short_attention.h"
#include "models/kernels/training/linear.h"
#include "models/kernels/training/row_functions.h"
#include "tests/support/catch.h"
#include "tests/support/instruction_sets.h"

using namespace zoo::kernels;

namespace {

bool any(InstructionSet) { return true; }

// Like the first CPUs with AVX-512.
bool without_vnni(InstructionSet set) {
  return set == InstructionSet::kPortable || set == InstructionSet::kAvx2 || set == InstructionSet::kAvx512;
}

}  // namespace

TEST_CASE("ZOO_KERNELS names an instruction set, or leaves the CPU's best") {
  CHECK(choose_instruction_set("", any) == InstructionSet::kNeonBf16);
  CHECK(choose_instruction_set("", without_vnni) == InstructionSet::kAvx512);
  CHECK(choose_instruction_set("portable", any) == InstructionSet::kPortable);
  CHECK(choose_instruction_set("avx2", any) == InstructionSet::kAvx2);
  CHECK(choose_instruction_set("avx_vnni", any) == InstructionSet::kAvxVnni);
  CHECK(choose_instruction_set("avx512", any) == InstructionSet::kAvx512);
  CHECK(choose_instruction_set("avx512_bf16", any) == InstructionSet::kAvx512Bf16);
  CHECK(choose_instruction_set("amx_bf16", any) == InstructionSet::kAmxBf16);
  CHECK(choose_instruction_set("neon", any) == InstructionSet::kNeon);
  CHECK(choose_instruction_set("neon_bf16", any) == InstructionSet::kNeonBf16);
  CHECK(choose_instruction_set("avx2", without_vnni) == InstructionSet::kAvx2);
}

TEST_CASE("A value of ZOO_KERNELS that names no instruction set is an error that lists them") {
  const std::string expected =
      "; expected portable, avx2, avx_vnni, avx512, avx512_bf16, amx_bf16, neon or neon_bf16";
  for (const std::string wanted : {"avx3", "AVX2", "avx512 ", "av"}) {
    CHECK_THROWS_WITH(choose_instruction_set(wanted, any),
                      Catch::Contains("ZOO_KERNELS=" + wanted + " ") && Catch::EndsWith(expected));
  }
}

TEST_CASE("A value of ZOO_KERNELS that the CPU cannot run is an error that names its best") {
  for (const std::string wanted : {"avx512_bf16", "avx_vnni"}) {
    CHECK_THROWS_WITH(
        choose_instruction_set(wanted, without_vnni),
        Catch::Contains("ZOO_KERNELS=" + wanted) && Catch::EndsWith("the best that it runs is avx512"));
  }
}

// ctest runs this with ZOO_KERNELS=portable and avx2 too.
TEST_CASE("Training kernels run only with the instruction sets that they need") {
  const char* wanted = std::getenv("ZOO_KERNELS");
  const InstructionSet set = choose_instruction_set(wanted != nullptr ? wanted : "");
  CHECK(instruction_set() == set);
  CHECK(has_training_kernels() == (set != InstructionSet::kPortable));
  CHECK(has_bfloat16_products() == (set == InstructionSet::kAvx512Bf16 || set == InstructionSet::kAmxBf16 ||
                                    set == InstructionSet::kNeonBf16));
  const at::Tensor x = at::randn({16, 12}), weight = at::randn({3, 12});
  CHECK(has_fast_linear(x, weight) == has_training_kernels());
  CHECK(has_fast_norm(x, weight[0]) == has_training_kernels());
  CHECK(zoo::kernels::has_short_attention(at::randn({1, 16, 12})) == has_training_kernels());
}

// ctest runs this with ZOO_KERNELS=avx2 too.
TEST_CASE("Autocast to bfloat16 leaves products in float32 where the CPU has none of bfloat16") {
  ZOO_NEEDS_TRAINING_KERNELS;
  const at::Tensor x = at::randn({16, 12}), weight = at::randn({3, 12});
  const at::Tensor exact = zoo::kernels::linear(x, weight, {});
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  at::autocast::set_autocast_enabled(at::kCPU, true);
  const bool fast = has_fast_linear(x, weight);
  const at::Tensor cast = zoo::kernels::linear(x, weight, {});
  at::autocast::set_autocast_enabled(at::kCPU, false);
  CHECK(fast);
  CHECK(cast.equal(exact) != has_bfloat16_products());
  CHECK(at::allclose(cast, exact, 0.05, 0.05));
}
