#include "models/kernels/packed/inference_kernels.h"

#include "models/kernels/cpu.h"

namespace zoo::kernels {

#define ZOO_DECLARE(set)                 \
  namespace set {                        \
  extern const InferenceKernels kernels; \
  }
ZOO_DECLARE(portable)
#if defined(__x86_64__)
ZOO_DECLARE(avx2)
ZOO_DECLARE(avx_vnni)
ZOO_DECLARE(avx512)
ZOO_DECLARE(avx512_bf16)
ZOO_DECLARE(amx_bf16)
#elif defined(__aarch64__)
ZOO_DECLARE(neon)
ZOO_DECLARE(neon_bf16)
#endif
#undef ZOO_DECLARE

namespace {

constexpr std::size_t kLongestTile = 16;

std::size_t up_to_multiple(std::size_t value, std::size_t of) { return (value + of - 1) / of * of; }

// Dimensions of a value in a cache.
std::size_t value_columns(std::size_t head_dim) { return up_to_multiple(head_dim, 16); }

const InferenceKernels& compiled_for(InstructionSet set) {
  switch (set) {
#if defined(__x86_64__)
    case InstructionSet::kAvx2: return avx2::kernels;
    case InstructionSet::kAvxVnni: return avx_vnni::kernels;
    case InstructionSet::kAvx512: return avx512::kernels;
    case InstructionSet::kAvx512Bf16: return avx512_bf16::kernels;
    case InstructionSet::kAmxBf16: return amx_bf16::kernels;
#elif defined(__aarch64__)
    case InstructionSet::kNeon: return neon::kernels;
    case InstructionSet::kNeonBf16: return neon_bf16::kernels;
#endif
    default: return portable::kernels;
  }
}

}  // namespace

std::size_t InferenceKernels::row_bytes(WeightType type, std::size_t inputs) const {
  if (type == WeightType::kFloat32) return inputs * sizeof(float);
  return up_to_multiple(inputs, kGroup) * (type == WeightType::kBfloat16 ? bfloat16_bytes : 1);
}

std::size_t scales_in_row(WeightType type, std::size_t inputs) {
  if (type == WeightType::kInt8) return (inputs + kByteGroup - 1) / kByteGroup;
  return type == WeightType::kInt4 || type == WeightType::kBlocks ? (inputs + kGroup - 1) / kGroup : 0;
}

std::size_t sums_in_row(WeightType type, std::size_t inputs) {
  return scales_in_row(type, inputs) * (type == WeightType::kInt8 ? 1 : kGroup / kRun);
}

std::size_t key_bytes(WeightType type, std::size_t head_dim, std::size_t capacity) {
  if (type == WeightType::kInt8) return capacity * (head_dim + sizeof(float));
  return capacity / kPanelOutputs * panel_bytes(type, head_dim);
}

std::size_t value_bytes(WeightType type, std::size_t head_dim, std::size_t capacity) {
  if (type == WeightType::kInt8) return capacity * (value_columns(head_dim) + sizeof(float));
  return capacity * value_columns(head_dim) * (type == WeightType::kFloat32 ? 4 : 2);
}

std::size_t attention_scratch_bytes(std::size_t head_dim, std::size_t positions) {
  // Scores in float32, and bfloat16 weights or queries, whichever are longer.
  const std::size_t row = up_to_multiple(positions, kPanelOutputs), query = value_columns(head_dim);
  return kLongestTile * (row * sizeof(float) + (row > query ? row : query) * 2);
}

const InferenceKernels* find_inference_kernels(InstructionSet set) {
  return set <= instruction_set() && cpu_runs(set) ? &compiled_for(set) : nullptr;
}

const InferenceKernels& inference_kernels() { return compiled_for(instruction_set()); }

}  // namespace zoo::kernels
