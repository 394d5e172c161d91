#include "models/kernels/cpu.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "data/base/error.h"

namespace zoo::kernels {
namespace {

// Names of the sets, in the order of their enum.
constexpr std::array<const char*, 8> kNames{"portable",    "avx2",     "avx_vnni", "avx512",
                                            "avx512_bf16", "amx_bf16", "neon",     "neon_bf16"};

#if defined(__x86_64__)
// The oldest supported compilers have no __builtin_cpu_supports for these.
bool has_avx_vnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kAvxVnni = 1U << 4;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & kAvxVnni) != 0;
}

// Linux requires a request, because the tiles enlarge the state that it saves for each thread.
bool has_amx_bf16() {
  static const bool has = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    constexpr unsigned kAmx = 1U << 22 | 1U << 24 | 1U << 25;  // BF16, tiles, bytes
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kAmx) != kAmx) return false;
    constexpr long kAskForState = 0x1023, kTiles = 18;
    return ::syscall(SYS_arch_prctl, kAskForState, kTiles) == 0;
  }();
  return has;
}
#endif

InstructionSet best_of(bool (*runs)(InstructionSet)) {
  InstructionSet best = InstructionSet::kPortable;
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (const auto set = static_cast<InstructionSet>(i); runs(set)) best = set;
  return best;
}

std::string all_names() {
  std::string names;
  for (const char* name : kNames) {
    if (name != kNames.front()) names += name == kNames.back() ? " or " : ", ";
    names += name;
  }
  return names;
}

}  // namespace

const char* name_of(InstructionSet set) { return kNames.at(static_cast<std::size_t>(set)); }

bool cpu_runs(InstructionSet set) {
  switch (set) {
    case InstructionSet::kPortable: return true;
#if defined(__x86_64__)
    case InstructionSet::kAvx2: return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case InstructionSet::kAvxVnni: return cpu_runs(InstructionSet::kAvx2) && has_avx_vnni();
    case InstructionSet::kAvx512:
      return cpu_runs(InstructionSet::kAvx2) && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl");
    case InstructionSet::kAvx512Bf16:
      return cpu_runs(InstructionSet::kAvx512) && __builtin_cpu_supports("avx512vnni") &&
             __builtin_cpu_supports("avx512bf16");
    case InstructionSet::kAmxBf16: return cpu_runs(InstructionSet::kAvx512Bf16) && has_amx_bf16();
#elif defined(__aarch64__)
    case InstructionSet::kNeon: return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
    case InstructionSet::kNeonBf16:
      return cpu_runs(InstructionSet::kNeon) && (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0 &&
             (getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0;
#endif
    default: return false;
  }
}

InstructionSet choose_instruction_set(std::string_view wanted, bool (*runs)(InstructionSet)) {
  if (wanted.empty()) return best_of(runs);
  const auto* const named = std::find(kNames.begin(), kNames.end(), wanted);
  if (named == kNames.end())
    throw Error("ZOO_KERNELS=", wanted, " is not an instruction set; expected ", all_names());
  const auto set = static_cast<InstructionSet>(named - kNames.begin());
  if (runs(set)) return set;
  throw Error("ZOO_KERNELS=", wanted, ": this CPU cannot run it; the best that it runs is ",
              name_of(best_of(runs)));
}

InstructionSet instruction_set() {
  static const InstructionSet chosen = [] {
    const char* wanted = std::getenv("ZOO_KERNELS");
    return choose_instruction_set(wanted != nullptr ? wanted : "");
  }();
  return chosen;
}

bool has_training_kernels() {
  return instruction_set() != InstructionSet::kPortable && !Tracing::is_active();
}

bool has_bfloat16_products() {
  const InstructionSet set = instruction_set();
  return set == InstructionSet::kAvx512Bf16 || set == InstructionSet::kAmxBf16 ||
         set == InstructionSet::kNeonBf16;
}

bool trains_bfloat16_in_float32() { return has_training_kernels() && !has_bfloat16_products(); }

}  // namespace zoo::kernels
