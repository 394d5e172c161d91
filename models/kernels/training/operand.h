#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

#include "models/kernels/parallel.h"
#include "models/kernels/pointwise.h"

// Products of tensors by a team of threads, in float32 or in mixed precision.
namespace zoo::kernels {

/// Roles of a matrix in its products: the left factor a, the right factor b, the transposed right factor of a
/// b^T. A transposed left factor has the layout of a right one.
struct Roles {
  bool left = false, right = false, right_transposed = false;
};

/// A float32 matrix as a factor of products: itself, or in mixed precision its packed layouts
/// (bfloat16_product.h), one for each role.
struct Operand {
  bool mixed = false;
  std::size_t rows = 0, columns = 0;
  at::Tensor matrix;  // mixed precision: undefined if only packed layouts exist
  at::Tensor by_rows, by_panels, transposed_by_panels;

  static Operand of(const at::Tensor& matrix, const Roles& roles, bool mixed);

  /// Space for a product's result that is a factor of others.
  static Operand empty(std::size_t rows, std::size_t columns, const Roles& roles, bool mixed);

  /// The layout of a right factor, to save for a backward pass, and the operand made from it.
  const at::Tensor& kept() const { return mixed ? by_panels : matrix; }
  static Operand from_kept(const at::Tensor& kept, std::size_t rows, std::size_t columns, bool mixed);

  /// Space for the slope of a function at this result.
  at::Tensor empty_slope() const;

  /// Packs this thread's part, if there is something to pack. sums [columns], over the rows, only in mixed
  /// precision; undefined: not wanted.
  void pack(const Team& team, const at::Tensor& sums = {}) const;
};

enum class Transposed { kNone, kLeft, kRight };

/// a b, a^T b or a b^T, and what is done with the result.
struct TensorProduct {
  const Operand &a, &b;
  Transposed transposed = Transposed::kNone;
  std::optional<at::Tensor> bias = {}, addend = {};
  bool adds = false;                       // adds to the result
  Pointwise pointwise = Pointwise::kNone;  // applied to a b + bias
  at::Tensor slope = {};                   // receives the function's slope; undefined: not wanted
  at::Tensor times = {};                   // a slope to multiply by
};

/// Computes this thread's part: rows or columns of the result, whichever are more.
void multiply(const TensorProduct& product, const at::Tensor& result, const Team& team);

/// The same for a result that is a factor of others: packed in mixed precision.
void multiply(const TensorProduct& product, const Operand& result, const Team& team);

/// Runs work(team) for products of this many multiplications; only on this thread if they are not worth
/// waking others.
void run_products(std::size_t multiplications, c10::function_ref<void(const Team&)> work);

/// Sums over the rows of a packed matrix: this thread's part of sums [columns].
void sum_rows(const Operand& operand, const at::Tensor& sums, const Team& team);

}  // namespace zoo::kernels
