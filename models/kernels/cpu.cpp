#include "models/kernels/cpu.h"

#include <array>
#include <cstdlib>
#include <string>

#include "data/base/error.h"

namespace zoo::kernels {
namespace {

constexpr std::array kInstructionSets{InstructionSet::kPortable, InstructionSet::kAvx2,
                                      InstructionSet::kAvx512, InstructionSet::kAvx512Bf16};

std::string all_names() {
  std::string names;
  for (const InstructionSet set : kInstructionSets) {
    if (set != kInstructionSets.front()) names += set == kInstructionSets.back() ? " or " : ", ";
    names += name_of(set);
  }
  return names;
}

InstructionSet chosen_by_environment() {
  const char* wanted = std::getenv("ZOO_KERNELS");
  return choose_instruction_set(wanted != nullptr ? wanted : "", cpu_instruction_set());
}

}  // namespace

const char* name_of(InstructionSet set) {
  switch (set) {
    case InstructionSet::kPortable:
      return "portable";
    case InstructionSet::kAvx2:
      return "avx2";
    case InstructionSet::kAvx512:
      return "avx512";
    case InstructionSet::kAvx512Bf16:
      return "avx512_bf16";
  }
  return "";
}

InstructionSet cpu_instruction_set() {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return InstructionSet::kPortable;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
    return InstructionSet::kAvx2;
  if (!__builtin_cpu_supports("avx512vnni") || !__builtin_cpu_supports("avx512bf16"))
    return InstructionSet::kAvx512;
  return InstructionSet::kAvx512Bf16;
#else
  return InstructionSet::kPortable;
#endif
}

InstructionSet choose_instruction_set(std::string_view wanted, InstructionSet best) {
  if (wanted.empty()) return best;
  for (const InstructionSet set : kInstructionSets) {
    if (wanted != name_of(set)) continue;
    if (set > best)
      throw Error("ZOO_KERNELS=", wanted, ": this CPU cannot run it; the best that it runs is ",
                  name_of(best));
    return set;
  }
  throw Error("ZOO_KERNELS=", wanted, " is not an instruction set; expected ", all_names());
}

InstructionSet instruction_set() {
  static const InstructionSet chosen = chosen_by_environment();
  return chosen;
}

bool has_training_kernels() {
  return instruction_set() >= InstructionSet::kAvx512;
}

bool has_bfloat16_products() {
  return instruction_set() >= InstructionSet::kAvx512Bf16;
}

}  // namespace zoo::kernels
