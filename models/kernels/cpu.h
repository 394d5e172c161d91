#pragma once

#include <string_view>

// Selects the instruction set of the kernels; no other file does.
namespace zoo::kernels {

/// Instruction sets that kernels are compiled for. Each contains the previous ones.
enum class InstructionSet {
  kPortable,    // what the compiler assumes of every CPU
  kAvx2,        // AVX2 and FMA
  kAvx512,      // AVX-512 F, BW, DQ and VL
  kAvx512Bf16,  // AVX-512 BF16 and VNNI as well
};

/// The set's name in ZOO_KERNELS: portable, avx2, avx512, avx512_bf16.
const char* name_of(InstructionSet set);

/// Best set of this CPU.
InstructionSet cpu_instruction_set();

/// Set named by `wanted`, a value of ZOO_KERNELS; `best` if it is empty. Throws Error if `wanted` names no
/// set, or one above `best`.
InstructionSet choose_instruction_set(std::string_view wanted, InstructionSet best);

/// Set in use: the CPU's best, or the lesser one that the environment variable ZOO_KERNELS names at the first
/// call. Throws as choose_instruction_set() does. LibTorch's own operators ignore it.
InstructionSet instruction_set();

/// True if the training kernels run, which need AVX-512; otherwise LibTorch's operators run.
bool has_training_kernels();

/// True if the mixed-precision training kernels run, which multiply pairs of bfloat16 (AVX-512 BF16).
bool has_bfloat16_products();

}  // namespace zoo::kernels
