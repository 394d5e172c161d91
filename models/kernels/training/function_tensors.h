#pragma once

#include <initializer_list>
#include <optional>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_unsafe_view.h>

// Tensor helpers of this folder's autograd functions.
namespace zoo::kernels {

inline std::size_t size_of(const at::Tensor& tensor, std::int64_t dim) {
  return static_cast<std::size_t>(tensor.size(dim));
}

/// [*, n] -> [rows, n], contiguous
inline at::Tensor as_matrix(const at::Tensor& x) { return x.contiguous().view({-1, x.size(-1)}); }

/// [rows, m] -> [*, m] for an input [*, n]. Autograd does not see a view, so that the result is the base of
/// its own views (ops/attention.cpp).
inline at::Tensor like_input(const at::Tensor& matrix, at::IntArrayRef input_sizes) {
  auto sizes = input_sizes.vec();
  sizes.back() = matrix.size(1);
  return at::_unsafe_view(matrix, sizes);
}

/// Wraps a bias or an addend: autograd functions do not accept undefined tensors.
inline std::optional<at::Tensor> given(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional<at::Tensor>(tensor.contiguous()) : std::nullopt;
}

/// True if a backward pass may follow.
inline bool wants_gradient(std::initializer_list<at::Tensor> tensors) {
  if (!at::GradMode::is_enabled()) return false;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined() && tensor.requires_grad()) return true;
  }
  return false;
}

inline void require_first_order() {
  TORCH_CHECK(!at::GradMode::is_enabled(),
              "the CPU kernels have no second derivatives: no create_graph here");
}

}  // namespace zoo::kernels
