#pragma once

#include <string_view>

// Selects the instruction set of the kernels; no other file does.
namespace zoo::kernels {

/// Instruction sets that kernels are compiled for, the better ones later.
enum class InstructionSet {
  kPortable,    // what the compiler assumes of every CPU
  kAvx2,        // AVX2 and FMA
  kAvxVnni,     // AVX-VNNI as well
  kAvx512,      // AVX-512 F, BW, DQ and VL
  kAvx512Bf16,  // AVX-512 BF16 and VNNI as well
  kAmxBf16,     // AMX-BF16 as well
  kNeon,        // ARMv8.2 with dot products
  kNeonBf16,    // BF16 and I8MM as well
};

/// The set's name in ZOO_KERNELS.
const char* name_of(InstructionSet set);

/// True if this CPU runs kernels of this set.
bool cpu_runs(InstructionSet set);

/// Set named by `wanted`, a value of ZOO_KERNELS; if it is empty, the best for which runs() holds. Throws
/// Error if `wanted` names no set, or one that does not run.
InstructionSet choose_instruction_set(std::string_view wanted, bool (*runs)(InstructionSet) = cpu_runs);

/// Set in use: the CPU's best, or the one that the environment variable ZOO_KERNELS names at the first call.
/// Throws as choose_instruction_set() does. LibTorch's own operators ignore it.
InstructionSet instruction_set();

/// True if the training kernels run; with kPortable, and while a Tracing lives on this thread, LibTorch's
/// operators run instead.
bool has_training_kernels();

class Tracing {
 public:
  Tracing() : outer_(active_) { active_ = true; }
  ~Tracing() { active_ = outer_; }
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;

  static bool is_active() { return active_; }

 private:
  static inline thread_local bool active_ = false;
  bool outer_;
};

/// True if the mixed-precision training kernels run, which multiply pairs of bfloat16.
bool has_bfloat16_products();

/// True if training in bfloat16 computes in float32, because bfloat16 would be slower on this CPU.
bool trains_bfloat16_in_float32();

}  // namespace zoo::kernels
