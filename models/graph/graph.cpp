#include "models/graph/graph.h"

#include <algorithm>

#include <ATen/core/List.h>

namespace zoo::graph {
namespace {

// The list in the type that the schema asks for: with or without elements that are left out.
c10::IValue list_of(const std::vector<at::Tensor>& tensors, const c10::TypePtr& type) {
  const auto list = type->cast<c10::ListType>();
  if (!list || list->getElementType()->kind() != c10::TypeKind::OptionalType) return tensors;
  c10::List<std::optional<at::Tensor>> optional;
  for (const at::Tensor& tensor : tensors)
    optional.push_back(tensor.defined() ? std::optional(tensor) : std::nullopt);
  return optional;
}

c10::IValue value_of(const Argument& argument, const c10::TypePtr& type, const std::vector<at::Tensor>& known,
                     const std::vector<std::int64_t>& symbols) {
  const auto tensor = [&](ValueId id) {
    return id == kNone ? at::Tensor() : known[static_cast<std::size_t>(id)];
  };
  std::vector<std::int64_t> integers;
  for (const Size& size : argument.integers) integers.push_back(size.value(symbols));
  switch (argument.kind) {
    case Argument::Kind::kTensor: {
      const at::Tensor found = tensor(argument.tensors[0]);
      return found.defined() ? c10::IValue(found) : c10::IValue();
    }
    case Argument::Kind::kTensors: {
      std::vector<at::Tensor> tensors;
      for (const ValueId id : argument.tensors) tensors.push_back(tensor(id));
      return list_of(tensors, type);
    }
    case Argument::Kind::kInteger: return integers[0];
    case Argument::Kind::kIntegers: return integers;
    default: return argument.literal;
  }
}

}  // namespace

Size::Size(std::int64_t constant) {
  if (constant != 0) terms_[{}] = constant;
}

Size Size::product(const std::vector<std::size_t>& symbols, std::int64_t coefficient) {
  Size size;
  size.terms_[symbols] = coefficient;
  return size;
}

std::optional<Size> Size::solve(const std::vector<std::vector<std::int64_t>>& corners,
                                std::vector<std::int64_t> values) {
  // One symbol after the other, values at two corners become a constant and a slope.
  for (std::size_t k = 0; k < corners.size(); ++k) {
    const std::int64_t low = corners[k][0], width = corners[k][1] - low;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if ((i >> k & 1) == 0) continue;
      std::int64_t &constant = values[i ^ (std::size_t{1} << k)], &slope = values[i];
      if ((slope - constant) % width != 0) return std::nullopt;
      slope = (slope - constant) / width;
      constant -= slope * low;
    }
  }
  Size size;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::vector<std::size_t> symbols;
    for (std::size_t k = 0; k < corners.size(); ++k)
      if ((i >> k & 1) != 0) symbols.push_back(k);
    if (values[i] != 0) size.terms_[symbols] = values[i];
  }
  return size;
}

std::int64_t Size::value(const std::vector<std::int64_t>& symbols) const {
  std::int64_t sum = 0;
  for (const auto& [factors, coefficient] : terms_) {
    std::int64_t product = coefficient;
    for (const std::size_t k : factors) product *= symbols[k];
    sum += product;
  }
  return sum;
}

Size Size::operator+(const Size& other) const {
  Size result = *this;
  for (const auto& [factors, coefficient] : other.terms_) result.terms_[factors] += coefficient;
  std::erase_if(result.terms_, [](const auto& term) { return term.second == 0; });
  return result;
}

Size Size::operator*(const Size& other) const {
  Size result;
  for (const auto& [factors, coefficient] : terms_) {
    for (const auto& [more, times] : other.terms_) {
      std::vector<std::size_t> all = factors;
      all.insert(all.end(), more.begin(), more.end());
      std::sort(all.begin(), all.end());
      result.terms_[all] += coefficient * times;
    }
  }
  std::erase_if(result.terms_, [](const auto& term) { return term.second == 0; });
  return result;
}

std::vector<at::Tensor> run(const Graph& graph, const std::vector<at::Tensor>& inputs) {
  std::vector<std::int64_t> symbols;
  for (const Symbol& symbol : graph.symbols) symbols.push_back(inputs[symbol.input].size(symbol.dim));
  std::vector<at::Tensor> known(graph.values.size());
  const auto at = [&](ValueId id) -> at::Tensor& { return known[static_cast<std::size_t>(id)]; };
  for (const Weight& weight : graph.weights) at(weight.value) = weight.tensor;
  for (std::size_t i = 0; i < inputs.size(); ++i) at(graph.input_values[i]) = inputs[i];
  for (const Node& node : graph.nodes) {
    torch::jit::Stack stack;
    const auto& schema = node.op.schema().arguments();
    for (std::size_t i = 0; i < node.arguments.size(); ++i)
      stack.push_back(value_of(node.arguments[i], schema[i].type(), known, symbols));
    node.op.callBoxed(stack);
    for (std::size_t i = 0; i < node.results.size(); ++i) {
      const auto& ids = node.results[i];
      const bool single = stack[i].isTensor();
      for (std::size_t j = 0; j < ids.size(); ++j)
        at(ids[j]) = single ? stack[i].toTensor() : stack[i].toTensorVector()[j];
    }
  }
  std::vector<at::Tensor> outputs;
  for (const ValueId id : graph.outputs) outputs.push_back(at(id));
  return outputs;
}

}  // namespace zoo::graph
