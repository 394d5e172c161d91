#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

#include "models/kernels/bfloat16_product.h"
#include "models/kernels/parallel.h"

// Tensors in the forms of bfloat16_product.h, packed and multiplied by a team.
namespace zoo::kernels {

/// Memory of a packed form, int32; nullptr for an undefined tensor.
at::Tensor empty_pairs(std::size_t count);
Pair* pairs(const at::Tensor& tensor);

/// A float32 matrix and its packed forms.
struct PackedPairs {
  std::size_t rows, columns;
  at::Tensor by_rows, by_panels;

  PackedPairs(const at::Tensor& matrix, bool wants_rows, bool wants_panels);
  PackedPairs(std::size_t rows, std::size_t columns, bool wants_rows, bool wants_panels);

  /// Packs this thread's panels. sums [columns], over the rows; may be absent.
  void pack(const at::Tensor& matrix, const Team& team, float* sums = nullptr) const;
  void pack(const float* matrix, const Team& team, float* sums = nullptr) const;

  PairFactor factor() const { return factor_by_rows(pairs(by_rows), columns); }
  PairFactor transposed() const { return factor_by_panels(pairs(by_panels), rows); }
};

/// Space for a weight [out, in] as the factor [in, out].
at::Tensor empty_transposed(const at::Tensor& weight);
void pack_transposed(const at::Tensor& weight, const at::Tensor& to, const Team& team);

/// result [rows, columns] = a b (+ bias) (+ addend), b with `depth` rows.
PairProduct product_into(const at::Tensor& result, const PairFactor& a, const at::Tensor& b,
                         std::size_t depth, const std::optional<at::Tensor>& bias = std::nullopt,
                         const std::optional<at::Tensor>& addend = std::nullopt);

/// Computes this thread's rows or panels, whichever there are more of.
void multiply(const PairProduct& product, const Team& team);

}  // namespace zoo::kernels
