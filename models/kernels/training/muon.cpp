#include "models/kernels/training/muon.h"

#include "models/kernels/training/adamw.h"
#include "models/kernels/training/matrix_product.h"
#include "models/kernels/vector.h"

namespace zoo::kernels::ZOO_KERNELS_FOR {
namespace {

constexpr auto kA = static_cast<float>(NewtonSchulz::a), kB = static_cast<float>(NewtonSchulz::b),
               kC = static_cast<float>(NewtonSchulz::c);
constexpr auto kSmallestNorm = static_cast<float>(NewtonSchulz::smallest_norm);

// Copies the upper half of a square matrix to the lower.
void mirror(float* square, std::size_t size) {
  for (std::size_t row = 0; row < size; row += kLanes) {
    for (std::size_t column = row; column < size; column += kLanes) {
      if (row != column && column + kLanes <= size) {
        Lanes block[kLanes];
        for (std::size_t i = 0; i < kLanes; ++i) block[i] = load(square + (row + i) * size + column);
        transpose(block);
        for (std::size_t j = 0; j < kLanes; ++j) store(square + (column + j) * size + row, block[j]);
        continue;
      }
      for (std::size_t i = row; i < size && i < row + kLanes; ++i) {
        for (std::size_t j = column; j < size && j < column + kLanes; ++j)
          if (i < j) square[j * size + i] = square[i * size + j];
      }
    }
  }
}

// The upper half of result = a b, which is symmetric, and what its panels hold below the diagonal.
void multiply_upper(const Matrix& a, const Matrix& b, std::size_t depth, float* result, std::size_t size) {
  const MatrixProduct product{.rows = size,
                              .columns = size,
                              .depth = depth,
                              .a = a,
                              .b = b,
                              .result = result,
                              .result_row = size,
                              .upper_only = true};
  // A split product would pack all rows again for each panel of the columns.
  const std::size_t width = is_split(product) ? size : kPanelColumns;
  for (std::size_t column = 0; column < size; column += width) {
    const std::size_t last = smaller(column + width, size);
    multiply(product, {0, last, column, last});
  }
}

// result = a b, which is symmetric.
void multiply_symmetric(const Matrix& a, const Matrix& b, std::size_t depth, float* result,
                        std::size_t size) {
  multiply_upper(a, b, depth, result, size);
  mirror(result, size);
}

// polynomial = kA I + kB gram + kC square, of whose square only the upper half is read.
void add_terms(const float* gram, const float* square, float* polynomial, std::size_t size) {
  for (std::size_t row = 0; row < size; ++row) {
    const std::size_t first = row * size + row / kLanes * kLanes;
    for_each_vector((row + 1) * size - first, [&](std::size_t i, const auto& read, const auto& write) {
      write(polynomial + first + i, kB * read(gram + first + i) + kC * read(square + first + i));
    });
    polynomial[row * size + row] += kA;
  }
  mirror(polynomial, size);
}

// x [rows, columns] /= its norm
void normalize(float* x, std::size_t elements) {
  const auto norm = static_cast<float>(__builtin_sqrt(sum_of_squares(x, elements)));
  const float factor = 1.0F / (norm > kSmallestNorm ? norm : kSmallestNorm);
  for_each_vector(elements, [&](std::size_t i, const auto& read, const auto& write) {
    write(x + i, factor * read(x + i));
  });
}

// A side of x: its shorter one has `size` rows.
struct Shape {
  std::size_t rows, columns;
  bool tall() const { return rows > columns; }
  std::size_t size() const { return tall() ? columns : rows; }
  std::size_t elements() const { return padded(rows * columns); }
  std::size_t square() const { return padded(size() * size()); }
};

// Returns the orthogonalized x in memory of x's size; `squares` holds four square matrices.
void orthogonalize(const Shape& shape, float* x, float* result, float* squares) {
  normalize(x, shape.rows * shape.columns);
  const std::size_t size = shape.size();
  float *gram = squares, *spare = gram + shape.square(), *polynomial = spare + shape.square(),
        *factor = polynomial + shape.square();
  const Matrix as_it_is{x, shape.columns, 1}, transposed{x, 1, shape.columns};
  if (shape.tall()) {
    multiply_symmetric(transposed, as_it_is, shape.rows, gram, size);
  } else {
    multiply_symmetric(as_it_is, transposed, shape.columns, gram, size);
  }
  const auto square_product = [&](const float* a, const float* b, float* to) {
    multiply_symmetric({a, size, 1}, {b, size, 1}, size, to, size);
  };
  for (int iteration = 0; iteration < NewtonSchulz::iterations; ++iteration) {
    multiply_upper({gram, size, 1}, {gram, size, 1}, size, spare, size);
    add_terms(gram, spare, iteration == 0 ? factor : polynomial, size);
    const float* step = iteration == 0 ? factor : polynomial;
    if (iteration > 0) {
      square_product(polynomial, factor, spare);
      float* const product = spare;
      spare = factor;
      factor = product;
    }
    if (iteration + 1 == NewtonSchulz::iterations) break;
    square_product(step, gram, spare);
    square_product(spare, step, gram);
  }
  const Matrix q{factor, size, 1};
  multiply({.rows = shape.rows,
            .columns = shape.columns,
            .depth = size,
            .a = shape.tall() ? as_it_is : q,
            .b = shape.tall() ? q : as_it_is,
            .result = result,
            .result_row = shape.columns},
           {0, shape.rows, 0, shape.columns});
}

}  // namespace

std::size_t muon_memory(std::size_t rows, std::size_t columns) {
  const Shape shape{rows, columns};
  return 2 * shape.elements() + 4 * shape.square();
}

void muon(const MuonUpdate& update, const MuonMatrix& m, float* memory) {
  const Shape shape{m.rows, m.columns};
  float *x = memory, *direction = x + shape.elements();
  const float scale = 1.0F / update.divisor;
  for_each_vector(m.rows * m.columns, [&](std::size_t i, const auto& read, const auto& write) {
    const Lanes gradient = scale * read(m.gradient + i);
    const Lanes moment = gradient + update.momentum * (read(m.momentum + i) - gradient);
    write(m.momentum + i, moment);
    write(x + i, update.nesterov ? gradient + update.momentum * (moment - gradient) : moment);
  });
  orthogonalize(shape, x, direction, direction + shape.elements());
  for_each_vector(m.rows * m.columns, [&](std::size_t i, const auto& read, const auto& write) {
    const Lanes weight = read(m.weight + i), step = read(direction + i);
    const Lanes kept =
        update.cautious ? select(step * weight < 0.0F, all(1.0F), all(update.kept)) : all(update.kept);
    write(m.weight + i, kept * weight - update.step_size * step);
  });
}

}  // namespace zoo::kernels::ZOO_KERNELS_FOR
