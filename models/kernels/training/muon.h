#pragma once

#include <cstddef>

// Muon (Jordan et al., 2024): the step of a matrix is its momentum, orthogonalized by five Newton-Schulz
// iterations of a quintic. Idea: every iterate of X is q(X X^T) X with a polynomial q, so the iterations run
// on the square matrix of the shorter side, and X is multiplied once, at the end. All square matrices are
// polynomials of one symmetric matrix: they are symmetric, so half of each product is computed. In float32
// this needs a third of the usual multiplications, and is a thousand times as exact as bfloat16.
namespace zoo::kernels {

/// The quintic a x + b x^3 + c x^5, which moves singular values of (0, 1] to about 1, how often it is
/// applied, and the least norm that a matrix is divided by: torch.optim.Muon's.
struct NewtonSchulz {
  static constexpr double a = 3.4445, b = -4.7750, c = 2.0315, smallest_norm = 1e-7;
  static constexpr int iterations = 5;
};

/// One update.
struct MuonUpdate {
  float momentum;
  bool nesterov;
  float kept;       // weight decay factor: 1 - learning rate * weight decay
  bool cautious;    // only where the step does not grow the weight
  float step_size;  // the learning rate, adjusted to the shape
  float divisor;    // divides the gradient
};

/// A weight and its state, each [rows, columns], contiguous.
struct MuonMatrix {
  std::size_t rows, columns;
  float* weight;
  const float* gradient;
  float* momentum;
};

/// Number of floats that muon() needs as working memory.
std::size_t muon_memory(std::size_t rows, std::size_t columns);

/// Updates the weight and the momentum on this thread. The bits do not depend on the number of threads that
/// update other matrices.
void muon(const MuonUpdate& update, const MuonMatrix& matrix, float* memory);

}  // namespace zoo::kernels
