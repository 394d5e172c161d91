#pragma once

#include <algorithm>

#include "data/base/error.h"
#include "models/onnx/file_builder.h"

namespace zoo::onnx {

/// A call of an operator, whose arguments are found by their names.
class Call {
 public:
  Call(FileBuilder& builder, const graph::Node& node) : to(builder), node_(node) {}

  FileBuilder& to;

  const graph::Value& result(std::size_t i = 0) const { return to.value(results()[i]); }
  std::vector<graph::ValueId> results() const {
    std::vector<graph::ValueId> all;
    for (const auto& ids : node_.results) all.insert(all.end(), ids.begin(), ids.end());
    return all;
  }

  bool has(const char* name) const {
    const graph::Argument* argument = find(name);
    return argument != nullptr &&
           !(argument->kind == graph::Argument::Kind::kLiteral && argument->literal.isNone()) &&
           !(argument->kind == graph::Argument::Kind::kTensor && argument->tensors[0] == graph::kNone);
  }
  graph::ValueId id(const char* name) const { return at(name).tensors.at(0); }
  const graph::Value& value(const char* name) const { return to.value(id(name)); }
  std::string tensor(const char* name) const { return to.name(id(name)); }
  bool is_tensor(const char* name) const { return at(name).kind == graph::Argument::Kind::kTensor; }
  const graph::Size& size(const char* name) const {
    if (at(name).integers.empty()) refuse(name);
    return at(name).integers[0];
  }
  std::int64_t integer(const char* name) const {
    const graph::Size& found = size(name);
    if (!found.is_constant()) refuse(name);
    return found.value({});
  }
  Numbers integers(const char* name) const {
    Numbers found;
    for (const graph::Size& one : at(name).integers) {
      if (!one.is_constant()) refuse(name);
      found.push_back(one.value({}));
    }
    return found;
  }
  const c10::IValue& literal(const char* name) const { return at(name).literal; }
  /// A dimension of the tensor `self`, counted from the first.
  std::int64_t dim(const char* name = "dim") const {
    const std::int64_t found = integer(name);
    return found < 0 ? found + static_cast<std::int64_t>(value("self").sizes.size()) : found;
  }
  /// A tensor or a number in a type.
  std::string operand(const char* name, at::ScalarType dtype) const {
    const graph::Argument& argument = at(name);
    if (argument.kind == graph::Argument::Kind::kTensor)
      return to.cast(to.name(argument.tensors[0]), to.value(argument.tensors[0]).dtype, dtype);
    if (argument.kind == graph::Argument::Kind::kInteger) {
      const graph::Size& number = argument.integers[0];
      if (number.is_constant()) return to.number(static_cast<double>(number.value({})), dtype);
      return to.cast(to.emit("Squeeze", {to.size(number)}), at::kLong, dtype);
    }
    if (!argument.literal.isScalar()) refuse(name);
    return to.number(argument.literal.toScalar().toDouble(), dtype);
  }
  const graph::Argument& at(const char* name) const {
    const graph::Argument* found = find(name);
    if (found == nullptr) refuse(name);
    return *found;
  }
  [[noreturn]] void refuse(const char* argument) const {
    throw Error("ONNX has no translation here for the argument '", argument, "' of ",
                node_.op.operator_name());
  }

 private:
  const graph::Argument* find(const char* name) const {
    const auto& declared = node_.op.schema().arguments();
    const auto found = std::ranges::find(declared, std::string_view(name), &c10::Argument::name);
    return found == declared.end() ? nullptr
                                   : &node_.arguments[static_cast<std::size_t>(found - declared.begin())];
  }

  const graph::Node& node_;
};

}  // namespace zoo::onnx
