#pragma once

#include <string_view>

// The one place that knows which instruction set the kernels use.
namespace zoo::kernels {

/// Instruction sets that kernels are compiled for. Each contains those before it.
enum class InstructionSet {
  kPortable,    // whatever the compiler assumes of every CPU
  kAvx2,        // AVX2 and FMA
  kAvx512,      // AVX-512 F, BW, DQ and VL
  kAvx512Bf16,  // AVX-512 BF16 and VNNI as well
};

/// The set's name in ZOO_KERNELS: portable, avx2, avx512, avx512_bf16.
const char* name_of(InstructionSet set);

/// The best set that this CPU has.
InstructionSet cpu_instruction_set();

/// The set that `wanted`, a value of ZOO_KERNELS, names; `best` if it is empty. Throws Error if it names no
/// set, or one above `best`.
InstructionSet choose_instruction_set(std::string_view wanted, InstructionSet best);

/// The set in use: the CPU's best, or the lesser one that the environment variable ZOO_KERNELS names when
/// this is first called. Throws as choose_instruction_set() does. LibTorch's own operators ignore it.
InstructionSet instruction_set();

/// True if the training kernels run; otherwise LibTorch's operators do their work. They are written for
/// AVX-512.
bool has_training_kernels();

/// True if the training kernels of mixed precision run: they multiply pairs of bfloat16 (AVX-512 BF16).
bool has_bfloat16_products();

}  // namespace zoo::kernels
