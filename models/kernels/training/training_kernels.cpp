// The training kernels are compiled once for each instruction set, in a namespace with the set's name. These
// are the functions of the headers, which call those of the set in use.
#include "models/kernels/attention/head_attention.h"
#include "models/kernels/cpu.h"
#include "models/kernels/training/adamw.h"
#include "models/kernels/training/matrix_product.h"
#include "models/kernels/training/muon.h"
#include "models/kernels/training/rows.h"
#include "models/kernels/training/split_product.h"

namespace zoo::kernels {

// ZOO_IN_SETS: a declaration in the namespace of each set. ZOO_CHOSEN: the name in that of the set in use.
#if defined(__x86_64__)
#define ZOO_IN_SETS(declaration) \
  namespace avx2 {               \
  declaration                    \
  }                              \
  namespace avx512 {             \
  declaration                    \
  }
#define ZOO_CHOSEN(name) (instruction_set() >= InstructionSet::kAvx512 ? avx512::name : avx2::name)
#elif defined(__aarch64__)
#define ZOO_IN_SETS(declaration) \
  namespace neon {               \
  declaration                    \
  }
#define ZOO_CHOSEN(name) neon::name
#else
#define ZOO_IN_SETS(declaration) \
  namespace portable {           \
  declaration                    \
  }
#define ZOO_CHOSEN(name) portable::name
#endif

#if defined(__x86_64__)
namespace amx_bf16 {
void multiply_split(const MatrixProduct& product, const Region& region);
}
#endif

ZOO_IN_SETS(void multiply(const MatrixProduct& product, const Region& region);)

bool is_split(const MatrixProduct& product) {
  return instruction_set() == InstructionSet::kAmxBf16 && is_for_split(product);
}

void multiply(const MatrixProduct& product, const Region& region) {
#if defined(__x86_64__)
  if (is_split(product)) return amx_bf16::multiply_split(product, region);
#endif
  ZOO_CHOSEN(multiply)(product, region);
}

ZOO_IN_SETS(extern const HeadAttention float_attention;)

const HeadAttention& float_attention() { return ZOO_CHOSEN(float_attention); }

#define ZOO_DISPATCH(result, name, parameters, arguments) \
  ZOO_IN_SETS(result name parameters;)                    \
  result name parameters { return ZOO_CHOSEN(name) arguments; }

ZOO_DISPATCH(void, adamw, (const AdamWUpdate& update, const AdamWWeights& weights, std::size_t size),
             (update, weights, size))
ZOO_DISPATCH(double, sum_of_squares, (const float* x, std::size_t size), (x, size))
ZOO_DISPATCH(double, cross_entropy, (const LogitsRow& row), (row))
ZOO_DISPATCH(double, cross_entropy_with_gradient, (const LogitsRow& row, float scale), (row, scale))
ZOO_DISPATCH(void, apply,
             (const DropoutMask& mask, const float* x, float* to, std::size_t size, std::size_t first,
              std::size_t last),
             (mask, x, to, size, first, last))
ZOO_DISPATCH(std::size_t, muon_memory, (std::size_t rows, std::size_t columns), (rows, columns))
ZOO_DISPATCH(void, muon, (const MuonUpdate& update, const MuonMatrix& matrix, float* memory),
             (update, matrix, memory))
ZOO_DISPATCH(void, gate, (const GatedRows& rows, float* result, std::size_t first, std::size_t last),
             (rows, result, first, last))
ZOO_DISPATCH(void, gate_backward,
             (const GatedRows& rows, const float* result_gradient, float* gradient, std::size_t first,
              std::size_t last),
             (rows, result_gradient, gradient, first, last))
ZOO_DISPATCH(void, rotate_heads,
             (const RotaryRows& rows, const float* from, std::size_t from_head, float* to,
              std::size_t to_head),
             (rows, from, from_head, to, to_head))
ZOO_DISPATCH(void, normalize, (const NormRows& rows, std::size_t first, std::size_t last),
             (rows, first, last))
ZOO_DISPATCH(void, normalize_backward,
             (const NormRows& rows, const NormGradients& gradients, std::size_t first, std::size_t last),
             (rows, gradients, first, last))

}  // namespace zoo::kernels
