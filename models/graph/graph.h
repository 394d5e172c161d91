#pragma once

/// @file
/// A forward pass as data: LibTorch's operators with their arguments, for any batch and length.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

namespace zoo::graph {

/// A polynomial with integer coefficients in the symbols 0, 1, … of a graph (batch, length).
class Size {
 public:
  /// Symbols of a product, in ascending order, to its coefficient; {} is the constant.
  using Terms = std::map<std::vector<std::size_t>, std::int64_t>;

  Size(std::int64_t constant = 0);  // NOLINT: a number is a size
  static Size symbol(std::size_t index) { return product({index}, 1); }
  static Size product(const std::vector<std::size_t>& symbols, std::int64_t coefficient);

  /// The polynomial of degree 1 in each symbol with `values` at all corners: value number i belongs to the
  /// corner where symbol k has corners[k][1] if bit k of i is set, else corners[k][0]. nullopt for fractions.
  static std::optional<Size> solve(const std::vector<std::vector<std::int64_t>>& corners,
                                   std::vector<std::int64_t> values);

  bool is_constant() const { return terms_.empty() || (terms_.size() == 1 && terms_.begin()->first.empty()); }
  std::int64_t value(const std::vector<std::int64_t>& symbols) const;
  const Terms& terms() const { return terms_; }

  Size operator+(const Size& other) const;
  Size operator*(const Size& other) const;
  auto operator<=>(const Size&) const = default;

 private:
  Terms terms_;  // without zeros
};

/// A size that is free: that of dimension `dim` of input number `input`.
struct Symbol {
  std::string name;
  std::size_t input = 0;
  std::int64_t dim = 0;
  std::int64_t largest = 0;  // 0: no bound
  std::int64_t smallest = 1;
};

struct Input {
  std::string name;
  std::vector<Size> sizes;
  std::int64_t bound = 2;  // of int64 values
  at::ScalarType dtype = at::kLong;
};

/// A tensor that a graph computes with: a number in its `values`.
using ValueId = std::int64_t;
inline constexpr ValueId kNone = -1;  // an optional tensor that is left out

struct Value {
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;
  std::vector<Size> sizes, strides;
};

struct Argument {
  enum class Kind { kLiteral, kTensor, kTensors, kInteger, kIntegers };
  Kind kind = Kind::kLiteral;
  c10::IValue literal;  // of the other types: number, bool, text, device, none
  std::vector<ValueId> tensors;
  std::vector<Size> integers;  // also those that stand for an enum, such as a dtype
};

/// A call of an operator, as its schema orders arguments. Results are single tensors, or lists.
struct Node {
  c10::OperatorHandle op;
  std::vector<Argument> arguments;
  std::vector<std::vector<ValueId>> results;
};

struct Weight {
  enum class Kind { kParameter, kBuffer, kConstant };
  std::string name;
  Kind kind = Kind::kParameter;
  at::Tensor tensor;
  ValueId value = kNone;
};

struct Graph {
  std::vector<Symbol> symbols;
  std::vector<std::int64_t> sample;  // a value of each symbol
  std::vector<Input> inputs;
  std::vector<ValueId> input_values;  // of each input
  std::vector<Weight> weights;
  std::vector<Value> values;
  std::vector<Node> nodes;  // in the order of computation
  std::vector<ValueId> outputs;
};

/// Runs the graph by LibTorch's dispatcher. Throws c10::Error as the operators do.
std::vector<at::Tensor> run(const Graph& graph, const std::vector<at::Tensor>& inputs);

}  // namespace zoo::graph
