#include "models/graph/graph.h"

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

std::string Graph::name_of(const Node& node) {
  const c10::OperatorName& name = node.op.operator_name();
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
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
