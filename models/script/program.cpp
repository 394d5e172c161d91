#include "models/script/program.h"

#include <map>
#include <memory>

#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>

namespace zoo::script {
namespace {

using graph::Size;
using graph::ValueId;
using torch::jit::Value;

// The writer saves a tensor's complete storage: that of a weight may be a whole file.
at::Tensor stored(const at::Tensor& tensor) {
  const at::Tensor copy = tensor.detach().to(at::kCPU).contiguous();
  return copy.storage().nbytes() == copy.nbytes() ? copy : copy.clone();
}

using Copies = std::map<const c10::TensorImpl*, at::Tensor>;

torch::jit::Module copy_of(const torch::nn::Module& module, const std::string& class_name,
                           const std::shared_ptr<torch::jit::CompilationUnit>& unit, Copies& copies) {
  torch::jit::Module copy(c10::QualifiedName("__torch__." + class_name), unit, /*shouldMangle=*/true);
  copy.register_attribute("training", c10::BoolType::get(), false);
  const auto stored_once = [&](const at::Tensor& tensor) -> at::Tensor& {
    at::Tensor& known = copies[tensor.unsafeGetTensorImpl()];
    if (!known.defined()) known = stored(tensor);
    return known;
  };
  for (const auto& item : module.named_parameters(/*recurse=*/false))
    copy.register_parameter(item.key(), stored_once(item.value()), false);
  for (const auto& item : module.named_buffers(/*recurse=*/false))
    copy.register_buffer(item.key(), stored_once(item.value()));
  for (const auto& child : module.named_children())
    copy.register_module(child.key(), copy_of(*child.value(), "Part", unit, copies));
  return copy;
}

class Method {
 public:
  Method(torch::jit::Module& module, const std::string& name, const graph::Graph& graph)
      : module_(module), name_(name), graph_(graph), values_(graph.values.size()) {
    self_ = jit_->addInput("self")->setType(module._ivalue()->type());
  }

  std::shared_ptr<torch::jit::Graph> build(std::size_t inputs, std::size_t outputs) {
    add_inputs(inputs);
    for (const graph::Weight& weight : graph_.weights) at(weight.value) = value_of(weight);
    for (const graph::Node& node : graph_.nodes) add(node);
    std::vector<Value*> results;
    for (const ValueId id : graph_.outputs) results.push_back(at(id));
    if (results.size() > outputs) {
      results.push_back(list(c10::TensorType::get(), {results.begin() + offset(outputs), results.end()}));
      results.erase(results.begin() + offset(outputs), results.end() - 1);
    }
    jit_->registerOutput(results.size() == 1 ? results[0]
                                             : jit_->insertNode(jit_->createTuple(results))->output());
    torch::jit::EliminateDeadCode(jit_);
    return jit_;
  }

 private:
  static std::ptrdiff_t offset(std::size_t count) { return static_cast<std::ptrdiff_t>(count); }
  Value*& at(ValueId id) { return values_[static_cast<std::size_t>(id)]; }

  void add_inputs(std::size_t count) {
    std::vector<Value*> given;
    for (std::size_t i = 0; i < std::min(count, graph_.inputs.size()); ++i)
      given.push_back(jit_->addInput(graph_.inputs[i].name));
    if (graph_.inputs.size() > count) {
      Value* const rest = jit_->addInput("caches")->setType(c10::ListType::ofTensors());
      for (Value* const one : unpacked(rest, graph_.inputs.size() - count)) given.push_back(one);
    }
    for (std::size_t i = 0; i < given.size(); ++i) at(graph_.input_values[i]) = given[i];
    device_ = jit_->insert(torch::jit::prim::device, {given[0]});
    for (const graph::Symbol& symbol : graph_.symbols)
      sizes_[Size::symbol(sizes_.size())] =
          jit_->insert(torch::jit::aten::size, {given[symbol.input], symbol.dim});
  }

  Value* value_of(const graph::Weight& weight) {
    if (weight.kind == graph::Weight::Kind::kConstant) {
      const std::string name = name_ + "_" + weight.name;
      module_.register_buffer(name, stored(weight.tensor));
      return jit_->insertGetAttr(self_, name);
    }
    Value* owner = self_;
    std::size_t begin = 0;
    for (std::size_t dot; (dot = weight.name.find('.', begin)) != std::string::npos; begin = dot + 1) {
      Value*& child = children_[weight.name.substr(0, dot)];
      if (child == nullptr) child = jit_->insertGetAttr(owner, weight.name.substr(begin, dot - begin));
      owner = child;
    }
    return jit_->insertGetAttr(owner, weight.name.substr(begin));
  }

  Value* list(const c10::TypePtr& type, const std::vector<Value*>& elements) {
    return jit_->insertNode(jit_->createList(type, elements))->output();
  }

  at::ArrayRef<Value*> unpacked(Value* list, std::size_t count) {
    return jit_->insertNode(jit_->createListUnpack(list, count))->outputs();
  }

  // The polynomial, computed once.
  Value* value_of(const Size& size) {
    if (size.is_constant()) return jit_->insertConstant(size.value(graph_.sample));
    if (const auto known = sizes_.find(size); known != sizes_.end()) return known->second;
    Value* sum = nullptr;
    for (const auto& [symbols, coefficient] : size.terms()) {
      Value* product = coefficient == 1 && !symbols.empty() ? nullptr : jit_->insertConstant(coefficient);
      for (const std::size_t symbol : symbols) {
        Value* const factor = sizes_.at(Size::symbol(symbol));
        product = product == nullptr ? factor : jit_->insert(torch::jit::aten::mul, {product, factor});
      }
      sum = sum == nullptr ? product : jit_->insert(torch::jit::aten::add, {sum, product});
    }
    return sizes_[size] = sum;
  }

  Value* value_of(const graph::Argument& argument, const c10::TypePtr& type) {
    using Kind = graph::Argument::Kind;
    const auto tensor = [&](ValueId id) {
      return id == graph::kNone ? jit_->insertConstant(c10::IValue()) : at(id);
    };
    std::vector<Value*> elements;
    switch (argument.kind) {
      case Kind::kTensor: return tensor(argument.tensors[0]);
      case Kind::kTensors:
        for (const ValueId id : argument.tensors) elements.push_back(tensor(id));
        return list(element_type(type), elements);
      case Kind::kInteger: return value_of(argument.integers[0]);
      case Kind::kIntegers:
        for (const Size& size : argument.integers) elements.push_back(value_of(size));
        return list(c10::IntType::get(), elements);
      default: return argument.literal.isDevice() ? device_ : jit_->insertConstant(argument.literal);
    }
  }

  // Of Tensor[], Tensor?[] or an optional one of them.
  static c10::TypePtr element_type(c10::TypePtr type) {
    if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
    return type->expect<c10::ListType>()->getElementType();
  }

  void add(const graph::Node& node) {
    const c10::FunctionSchema& schema = node.op.schema();
    std::vector<Value*> arguments;
    for (std::size_t i = 0; i < node.arguments.size(); ++i)
      arguments.push_back(value_of(node.arguments[i], schema.arguments()[i].type()));
    torch::jit::Node* const call = jit_->insertNode(
        jit_->create(c10::Symbol::fromQualString(schema.name()), arguments, node.results.size()));
    for (std::size_t i = 0; i < node.results.size(); ++i) {
      const auto& ids = node.results[i];
      Value* const result = call->output(i)->setType(schema.returns()[i].type());
      if (result->type()->kind() != c10::TypeKind::ListType) {
        at(ids[0]) = result;
        continue;
      }
      const auto elements = unpacked(result, ids.size());
      for (std::size_t k = 0; k < ids.size(); ++k) at(ids[k]) = elements[k];
    }
  }

  torch::jit::Module& module_;
  const std::string& name_;
  const graph::Graph& graph_;
  std::shared_ptr<torch::jit::Graph> jit_ = std::make_shared<torch::jit::Graph>();
  std::vector<Value*> values_;
  Value *self_ = nullptr, *device_ = nullptr;
  std::map<std::string, Value*> children_;  // by the path of a module
  std::map<Size, Value*> sizes_;
};

}  // namespace

torch::jit::Module module_of(const Model& model) {
  Copies copies;
  return copy_of(model, "Model", std::make_shared<torch::jit::CompilationUnit>(), copies);
}

void add_method(torch::jit::Module& module, const std::string& name, const graph::Graph& graph,
                std::size_t inputs, std::size_t outputs) {
  const auto body = Method(module, name, graph).build(inputs, outputs);
  const c10::QualifiedName path(*module.type()->name(), name);
  module.type()->addMethod(module._ivalue()->compilation_unit()->create_function(path, body));
}

}  // namespace zoo::script
