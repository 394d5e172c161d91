// The training kernels are compiled once for each instruction set, in a namespace with the set's name. These
// are the functions of the headers, which call those of the set in use.
#include "models/kernels/attention/head_attention.h"
#include "models/kernels/cpu.h"
#include "models/kernels/training/adamw.h"
#include "models/kernels/training/cross_entropy.h"
#include "models/kernels/training/dropout_mask.h"
#include "models/kernels/training/gated_rows.h"
#include "models/kernels/training/matrix_product.h"
#include "models/kernels/training/muon.h"
#include "models/kernels/training/norm_rows.h"
#include "models/kernels/training/rotary_rows.h"

namespace zoo::kernels {

#define ZOO_DECLARE(set)                                                                       \
  namespace set {                                                                              \
  extern const HeadAttention float_attention;                                                  \
  void adamw(const AdamWUpdate&, const AdamWWeights&, std::size_t);                            \
  double sum_of_squares(const float*, std::size_t);                                            \
  double cross_entropy(const LogitsRow&);                                                      \
  double cross_entropy_with_gradient(const LogitsRow&, float);                                 \
  void apply(const DropoutMask&, const float*, float*, std::size_t, std::size_t, std::size_t); \
  void multiply(const MatrixProduct&, const Region&);                                          \
  std::size_t muon_memory(std::size_t, std::size_t);                                           \
  void muon(const MuonUpdate&, const MuonMatrix&, float*);                                     \
  void gate(const GatedRows&, float*, std::size_t, std::size_t);                               \
  void gate_backward(const GatedRows&, const float*, float*, std::size_t, std::size_t);        \
  void rotate_heads(const RotaryRows&, const float*, std::size_t, float*, std::size_t);        \
  void normalize(const NormRows&, std::size_t, std::size_t);                                   \
  void normalize_backward(const NormRows&, const NormGradients&, std::size_t, std::size_t);    \
  }

#if defined(__x86_64__)
ZOO_DECLARE(avx2)
ZOO_DECLARE(avx512)
#define ZOO_CHOSEN(name) (instruction_set() >= InstructionSet::kAvx512 ? avx512::name : avx2::name)
#elif defined(__aarch64__)
ZOO_DECLARE(neon)
#define ZOO_CHOSEN(name) neon::name
#else
ZOO_DECLARE(portable)
#define ZOO_CHOSEN(name) portable::name
#endif

const HeadAttention& float_attention() {
  return ZOO_CHOSEN(float_attention);
}

void adamw(const AdamWUpdate& update, const AdamWWeights& weights, std::size_t size) {
  return ZOO_CHOSEN(adamw)(update, weights, size);
}

double sum_of_squares(const float* x, std::size_t size) {
  return ZOO_CHOSEN(sum_of_squares)(x, size);
}

double cross_entropy(const LogitsRow& row) {
  return ZOO_CHOSEN(cross_entropy)(row);
}

double cross_entropy_with_gradient(const LogitsRow& row, float scale) {
  return ZOO_CHOSEN(cross_entropy_with_gradient)(row, scale);
}

void apply(const DropoutMask& mask, const float* x, float* to, std::size_t size, std::size_t first,
           std::size_t last) {
  return ZOO_CHOSEN(apply)(mask, x, to, size, first, last);
}

void multiply(const MatrixProduct& product, const Region& region) {
  return ZOO_CHOSEN(multiply)(product, region);
}

std::size_t muon_memory(std::size_t rows, std::size_t columns) {
  return ZOO_CHOSEN(muon_memory)(rows, columns);
}

void muon(const MuonUpdate& update, const MuonMatrix& matrix, float* memory) {
  return ZOO_CHOSEN(muon)(update, matrix, memory);
}

void gate(const GatedRows& rows, float* result, std::size_t first, std::size_t last) {
  return ZOO_CHOSEN(gate)(rows, result, first, last);
}

void gate_backward(const GatedRows& rows, const float* result_gradient, float* gradient, std::size_t first,
                   std::size_t last) {
  return ZOO_CHOSEN(gate_backward)(rows, result_gradient, gradient, first, last);
}

void rotate_heads(const RotaryRows& rows, const float* from, std::size_t from_head, float* to,
                  std::size_t to_head) {
  return ZOO_CHOSEN(rotate_heads)(rows, from, from_head, to, to_head);
}

void normalize(const NormRows& rows, std::size_t first, std::size_t last) {
  return ZOO_CHOSEN(normalize)(rows, first, last);
}

void normalize_backward(const NormRows& rows, const NormGradients& gradients, std::size_t first,
                        std::size_t last) {
  return ZOO_CHOSEN(normalize_backward)(rows, gradients, first, last);
}

}  // namespace zoo::kernels
