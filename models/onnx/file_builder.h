#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>

#include "models/graph/graph.h"
#include "models/onnx/onnx_file.h"

namespace zoo::onnx {

using Names = std::vector<std::string>;
using Numbers = std::vector<std::int64_t>;

/// A file that is made from a graph, node by node. Values of ONNX have names.
class FileBuilder {
 public:
  /// Both must outlive the builder. Adds the graph's inputs to the file.
  FileBuilder(const graph::Graph& graph, File& file)
      : graph_(graph), file_(file), names_(graph.values.size()) {
    for (const graph::Node& node : graph.nodes) {
      const bool linear = node.op.schema().name() == "aten::linear";
      for (std::size_t i = 0; i < node.arguments.size(); ++i) {
        const auto& used = node.arguments[i].tensors;
        if (!(linear && i == 1)) as_they_are_.insert(used.begin(), used.end());
      }
    }
    for (const graph::Weight& weight : graph.weights) weights_[weight.value] = &weight;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      set_name(graph.input_values[i], graph.inputs[i].name);
      file.inputs.push_back(port(graph.inputs[i].name, graph.inputs[i].dtype, graph.inputs[i].sizes));
    }
  }

  const graph::Value& value(graph::ValueId id) const { return graph_.values[static_cast<std::size_t>(id)]; }
  void set_name(graph::ValueId id, const std::string& name) { names_[static_cast<std::size_t>(id)] = name; }

  /// Adds a weight at its first use.
  std::string name(graph::ValueId id) {
    std::string& found = names_[static_cast<std::size_t>(id)];
    if (found.empty()) {
      const graph::Weight& weight = *weights_.at(id);
      file_.initializers.push_back({found = weight.name, weight.tensor});
    }
    return found;
  }

  /// The matrix [in, out] of linear's weight [out, in].
  std::string transposed(graph::ValueId id) {
    const auto weight = weights_.find(id);
    if (weight == weights_.end() || as_they_are_.contains(id))
      return emit("Transpose", {name(id)}, {{"perm", Numbers{1, 0}}});
    const std::string text = weight->second->name + ".transposed";
    if (transposed_.insert(id).second)
      file_.initializers.push_back({text, weight->second->tensor, /*transposed=*/true});
    return text;
  }

  /// Adds a node; returns the names of its results.
  Names emit_all(const std::string& op, Names inputs, std::vector<Attribute> attributes, std::size_t count) {
    Names outputs;
    for (std::size_t i = 0; i < count; ++i) outputs.push_back("value_" + std::to_string(next_++));
    file_.nodes.push_back({op, std::move(inputs), outputs, std::move(attributes)});
    return outputs;
  }

  /// The same for a single result. A node that is there already is not added again.
  std::string emit(const std::string& op, const Names& inputs,
                   const std::vector<Attribute>& attributes = {}) {
    std::string& result = known_[{op, inputs, attributes}];
    if (result.empty()) result = emit_all(op, inputs, attributes, 1)[0];
    return result;
  }

  void add_output(const std::string& text, graph::ValueId id) {
    file_.nodes.push_back({"Identity", {name(id)}, {text}});
    file_.outputs.push_back(port(text, value(id).dtype, value(id).sizes));
  }

  std::string constant(const at::Tensor& tensor) {
    const at::Tensor dense = tensor.contiguous();
    const std::string bytes(static_cast<const char*>(dense.const_data_ptr()), dense.nbytes());
    std::string& name = constants_[{tensor.scalar_type(), tensor.sizes().vec(), bytes}];
    if (name.empty()) {
      name = "number_" + std::to_string(constants_.size());
      file_.initializers.push_back({name, tensor});
    }
    return name;
  }

  std::string number(double value, at::ScalarType dtype) {
    return constant(at::scalar_tensor(value, at::kDouble).to(dtype));
  }
  std::string number(std::int64_t value) { return constant(at::scalar_tensor(value, at::kLong)); }
  std::string numbers(const Numbers& values) { return constant(at::tensor(values, at::kLong)); }

  std::string cast(const std::string& name, at::ScalarType from, at::ScalarType to) {
    return from == to ? name : emit("Cast", {name}, {{"to", std::int64_t{dtype_number(to)}}});
  }

  /// A size as int64 [1], sizes as int64 [rank], computed from the shapes of the inputs.
  std::string size(const graph::Size& size) {
    if (size.is_constant()) return numbers({size.value({})});
    std::string sum;
    for (const auto& [factors, coefficient] : size.terms()) {
      std::string product = factors.empty() || coefficient != 1 ? numbers({coefficient}) : "";
      for (const std::size_t k : factors) {
        const graph::Symbol& symbol = graph_.symbols[k];
        const std::string factor = emit("Shape", {graph_.inputs[symbol.input].name},
                                        {{"start", symbol.dim}, {"end", symbol.dim + 1}});
        product = product.empty() ? factor : emit("Mul", {product, factor});
      }
      sum = sum.empty() ? product : emit("Add", {sum, product});
    }
    return sum;
  }

  std::string shape(const std::vector<graph::Size>& sizes) {
    if (sizes.empty()) return numbers({});
    Names parts;
    for (const graph::Size& one : sizes) parts.push_back(size(one));
    return emit("Concat", parts, {{"axis", std::int64_t{0}}});
  }

  /// In ONNX 0 stands for the input's own size, -1 for the one that is left.
  std::string reshape(const std::string& name, const std::vector<graph::Size>& from,
                      const std::vector<graph::Size>& to) {
    Numbers words;
    std::size_t inferred = 0;
    for (std::size_t i = 0; i < to.size(); ++i) {
      const bool own = i < from.size() && from[i] == to[i];
      words.push_back(to[i].is_constant() ? to[i].value({}) : own ? 0 : -1);
      inferred += static_cast<std::size_t>(words.back() == -1);
    }
    return emit("Reshape", {name, inferred > 1 ? shape(to) : numbers(words)});
  }

 private:
  Port port(const std::string& name, at::ScalarType dtype, const std::vector<graph::Size>& sizes) const {
    Port port{name, dtype};
    for (const graph::Size& size : sizes) {
      std::string sum;
      for (const auto& [factors, coefficient] : size.terms()) {
        std::string product = factors.empty() || coefficient != 1 ? std::to_string(coefficient) : "";
        for (const std::size_t k : factors) product += (product.empty() ? "" : "*") + graph_.symbols[k].name;
        sum += (sum.empty() ? "" : " + ") + product;
      }
      port.sizes.push_back(sum);
    }
    return port;
  }

  const graph::Graph& graph_;
  File& file_;
  Names names_;  // of values; empty: not there yet
  std::map<graph::ValueId, const graph::Weight*> weights_;
  std::set<graph::ValueId> as_they_are_, transposed_;  // as_they_are_: read by any operator but linear
  std::map<std::tuple<std::string, Names, std::vector<Attribute>>, std::string> known_;
  // By type, sizes and bytes.
  std::map<std::tuple<at::ScalarType, Numbers, std::string>, std::string> constants_;
  std::size_t next_ = 0;
};

/// Adds the operators of ONNX that compute what the node does; returns the names of its results, lists one by
/// one. Throws Error naming an operator, or an argument of it, that has no translation.
Names translated(FileBuilder& builder, const graph::Node& node);

}  // namespace zoo::onnx
