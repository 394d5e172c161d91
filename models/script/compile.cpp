#include "models/script/compile.h"

#include <map>
#include <memory>

#include <ATen/core/ivalue.h>
#include <c10/util/irange.h>

namespace zoo::script {
namespace {

class Compiler {
 public:
  explicit Compiler(at::ScalarType dtype) : dtype_(dtype) {}

  torch::jit::Module build(const ScriptPart& part) {
    std::vector<torch::jit::Module> children;
    for (const ScriptChild& child : part.children) children.push_back(build(child.part));
    const auto known = sources_.find(part.class_name);
    if (known != sources_.end()) {
      TORCH_CHECK(known->second == part.source, "two texts for the class ", part.class_name);
      return another(part, children);
    }
    torch::jit::Module module("__torch__." + part.class_name, unit_);
    module.register_attribute("training", c10::BoolType::get(), false);
    for (const auto& [name, tensor] : part.parameters) module.register_parameter(name, stored(tensor), false);
    for (const auto& [name, tensor] : part.buffers) module.register_buffer(name, stored(tensor));
    for (const auto& [name, value] : part.attributes) add_attribute(module, name, value);
    for (const auto i : c10::irange(children.size()))
      module.register_module(part.children[i].name, children[i]);
    if (!part.source.empty()) module.define(part.source);
    sources_.emplace(part.class_name, part.source);
    return module;
  }

 private:
  // Makes an object of an existing class.
  torch::jit::Module another(const ScriptPart& part, const std::vector<torch::jit::Module>& children) {
    const auto type = unit_->get_class("__torch__." + part.class_name);
    torch::jit::Module module(unit_, type);
    const std::size_t members =
        1 + part.parameters.size() + part.buffers.size() + part.attributes.size() + part.children.size();
    TORCH_CHECK(type->numAttributes() == members, "objects of the class ", part.class_name, " differ");
    module.setattr("training", false);
    for (const auto& [name, tensor] : part.parameters) module.setattr(name, stored(tensor));
    for (const auto& [name, tensor] : part.buffers) module.setattr(name, stored(tensor));
    for (const auto& [name, value] : part.attributes) module.setattr(name, to_value(value));
    for (const auto i : c10::irange(children.size()))
      module.setattr(part.children[i].name, children[i]._ivalue());
    return module;
  }

  static c10::IValue to_value(const ScriptValue& value) {
    return std::visit([](const auto& held) { return c10::IValue(held); }, value);
  }

  static void add_attribute(torch::jit::Module& module, const std::string& name, const ScriptValue& value) {
    const c10::IValue held = to_value(value);
    // An empty list does not reveal its type.
    const bool list = std::holds_alternative<std::vector<std::int64_t>>(value);
    module.register_attribute(name, list ? c10::ListType::ofInts() : held.type(), held);
  }

  // The writer saves a tensor's complete storage, so it must hold nothing else: a weight may be a view of a
  // file.
  at::Tensor stored(const at::Tensor& tensor) const {
    const bool real = tensor.is_floating_point();
    at::Tensor copy = tensor.detach().to(at::kCPU, real ? dtype_ : tensor.scalar_type()).contiguous();
    if (copy.storage().nbytes() != copy.nbytes()) copy = copy.clone();
    return copy;
  }

  at::ScalarType dtype_;
  std::shared_ptr<torch::jit::CompilationUnit> unit_ = std::make_shared<torch::jit::CompilationUnit>();
  std::map<std::string, std::string> sources_;
};

}  // namespace

torch::jit::Module compile(const ScriptPart& part, at::ScalarType dtype) {
  return Compiler(dtype).build(part);
}

}  // namespace zoo::script
