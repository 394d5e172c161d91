#include "models/pt2/program.h"

#include <cmath>
#include <map>

#include <caffe2/serialize/versions.h>
#include <nlohmann/json.hpp>
#include <torch/version.h>

#include "data/base/error.h"

namespace zoo::pt2 {
namespace {

using graph::Argument;
using graph::Graph;
using graph::kNone;
using graph::Node;
using graph::Size;
using graph::Value;
using graph::ValueId;
using Json = nlohmann::ordered_json;

// Numbers of the schema's enums.
constexpr int kPositional = 1, kKeyword = 2, kStrided = 7;
constexpr int kMajor = 8, kMinor = 8;  // readers compare the major version

int dtype_number(at::ScalarType dtype) {
  static const std::map<at::ScalarType, int> numbers{
      {at::kByte, 1}, {at::kChar, 2},  {at::kShort, 3},  {at::kInt, 4},   {at::kLong, 5},
      {at::kHalf, 6}, {at::kFloat, 7}, {at::kDouble, 8}, {at::kBool, 12}, {at::kBFloat16, 13}};
  const auto found = numbers.find(dtype);
  if (found == numbers.end()) throw Error("tensors of ", c10::toString(dtype), " cannot be written as .pt2");
  return found->second;
}

Json device_json(const at::Device& device) {
  return {{"type", c10::DeviceTypeName(device.type(), /*lower_case=*/true)},
          {"index", device.has_index() ? Json(device.index()) : Json()}};
}

// "s1", "s0*s1*12 + 3", as sympy reads it.
std::string expression(const Size& size) {
  std::string sum;
  for (const auto& [factors, coefficient] : size.terms()) {
    std::string product = "Integer(" + std::to_string(coefficient) + ")";
    for (const std::size_t k : factors)
      product += "*Symbol('s" + std::to_string(k) + "', positive=True, integer=True)";
    sum += (sum.empty() ? "" : " + ") + product;
  }
  return sum;
}

Json meta_json(at::ScalarType dtype, const Json& sizes, const Json& strides, const at::Device& device,
               bool requires_grad) {
  return {{"dtype", dtype_number(dtype)},
          {"sizes", sizes},
          {"requires_grad", requires_grad},
          {"device", device_json(device)},
          {"strides", strides},
          {"storage_offset", {{"as_int", 0}}},
          {"layout", kStrided}};
}

Json double_json(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

std::string identifier(std::string text) {
  for (char& c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return text;
}

class Program {
 public:
  explicit Program(const Graph& graph) : graph_(graph) {}

  Json json() {
    name_values();
    Json inputs = Json::array(), input_specs = Json::array();
    for (const graph::Weight& weight : graph_.weights) {
      inputs.push_back(tensor(weight.value));
      input_specs.push_back(spec(weight));
    }
    for (const ValueId id : graph_.input_values) {
      inputs.push_back(tensor(id));
      input_specs.push_back({{"user_input", {{"arg", tensor(id)}}}});
    }
    for (std::size_t k = 0; k < graph_.symbols.size(); ++k) add_symbol(k);
    for (const Node& node : graph_.nodes) add(node);
    Json outputs = Json::array(), output_specs = Json::array(), values = Json::object();
    for (const ValueId id : graph_.outputs) {
      outputs.push_back(tensor(id));
      output_specs.push_back({{"user_output", {{"arg", tensor(id)}}}});
    }
    for (std::size_t i = 0; i < names_.size(); ++i) values[names_[i]] = meta(graph_.values[i]);
    for (const graph::Weight& weight : graph_.weights)
      values[name(weight.value)]["requires_grad"] = weight.kind == graph::Weight::Kind::kParameter;
    // The nodes that compute sizes come first: they need the inputs alone.
    for (Json& node : nodes_) size_nodes_.push_back(std::move(node));
    return {{"graph_module",
             {{"graph",
               {{"inputs", inputs},
                {"outputs", outputs},
                {"nodes", size_nodes_},
                {"tensor_values", values},
                {"sym_int_values", size_values_},
                {"sym_bool_values", Json::object()},
                {"is_single_tensor_return", false},
                {"custom_obj_values", Json::object()},
                {"sym_float_values", Json::object()}}},
              {"signature", {{"input_specs", input_specs}, {"output_specs", output_specs}}},
              {"module_call_graph", call_graph()},
              {"metadata", Json::object()},
              {"treespec_namedtuple_fields", Json::object()}}},
            {"opset_version", {{"aten", caffe2::serialize::kMaxSupportedFileFormatVersion}}},
            {"range_constraints", ranges()},
            {"schema_version", {{"major", kMajor}, {"minor", kMinor}}},
            {"verifiers", {"TRAINING"}},
            {"torch_version", TORCH_VERSION},
            {"guards_code", guards()}};
  }

 private:
  const std::string& name(ValueId id) const { return names_.at(static_cast<std::size_t>(id)); }
  Json tensor(ValueId id) const { return {{"as_tensor", {{"name", name(id)}}}}; }

  void name_values() {
    names_.resize(graph_.values.size());
    const auto set = [&](ValueId id, const std::string& text) {
      names_[static_cast<std::size_t>(id)] = text;
    };
    for (const Node& node : graph_.nodes) {
      const std::string op = node.op.schema().name().substr(std::string("aten::").size());
      for (const auto& ids : node.results) {
        for (const ValueId id : ids) set(id, identifier(op) + "_" + std::to_string(id));
      }
    }
    for (const graph::Weight& weight : graph_.weights) {
      const char* const prefix = weight.kind == graph::Weight::Kind::kParameter ? "p_" : "b_";
      set(weight.value, prefix + identifier(weight.name));
    }
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i)
      set(graph_.input_values[i], identifier(graph_.inputs[i].name));
  }

  Json spec(const graph::Weight& weight) const {
    const Json argument{{"name", name(weight.value)}};
    switch (weight.kind) {
      case graph::Weight::Kind::kParameter:
        return {{"parameter", {{"arg", argument}, {"parameter_name", weight.name}}}};
      case graph::Weight::Kind::kBuffer:
        return {{"buffer", {{"arg", argument}, {"buffer_name", weight.name}, {"persistent", true}}}};
      default: return {{"tensor_constant", {{"arg", argument}, {"tensor_constant_name", weight.name}}}};
    }
  }

  Json size_json(const Size& size) const {
    if (size.is_constant()) return {{"as_int", size.value(graph_.sample)}};
    return {{"as_expr", {{"expr_str", expression(size)}, {"hint", {{"as_int", size.value(graph_.sample)}}}}}};
  }

  Json meta(const Value& value) const {
    Json sizes = Json::array(), strides = Json::array();
    for (const Size& size : value.sizes) sizes.push_back(size_json(size));
    for (const Size& stride : value.strides) strides.push_back(size_json(stride));
    return meta_json(value.dtype, sizes, strides, value.device, /*requires_grad=*/false);
  }

  void add_size_node(const std::string& target, const Json& inputs, const std::string& result,
                     const Size& size) {
    const Json output{{"as_sym_int", {{"as_name", result}}}};
    size_nodes_.push_back(
        {{"target", target}, {"inputs", inputs}, {"outputs", {output}}, {"metadata", Json::object()}});
    size_values_[result] = size_json(size);
    size_names_[size] = result;
  }

  void add_symbol(std::size_t k) {
    const graph::Symbol& symbol = graph_.symbols[k];
    const Json inputs{
        {{"name", "self"}, {"arg", tensor(graph_.input_values[symbol.input])}, {"kind", kPositional}},
        {{"name", "dim"}, {"arg", {{"as_int", symbol.dim}}}, {"kind", kPositional}}};
    add_size_node("torch.ops.aten.sym_size.int", inputs, symbol.name + "_size", Size::symbol(k));
  }

  // SymIntArgument of a size, for which nodes are added once: products of its symbols, then their sum.
  Json symbolic(const Size& size) {
    if (size.is_constant()) return {{"as_int", size.value(graph_.sample)}};
    return {{"as_name", computed(size)}};
  }

  std::string computed(const Size& size) {
    if (const auto known = size_names_.find(size); known != size_names_.end()) return known->second;
    const auto combine = [&](const char* op, const Size& a, const Size& b, const Size& result) {
      Json inputs = Json::array();
      for (const auto& [side, operand] : {std::pair("a", a), std::pair("b", b)}) {
        const Json argument =
            operand.is_constant() ? symbolic(operand) : Json{{"as_sym_int", symbolic(operand)}};
        inputs.push_back({{"name", side}, {"arg", argument}, {"kind", kPositional}});
      }
      add_size_node(op, inputs, "size_" + std::to_string(size_names_.size()), result);
      return size_names_.at(result);
    };
    const auto& last = *size.terms().rbegin();
    if (size.terms().size() > 1) {
      const Size tail = Size::product(last.first, last.second);
      return combine("_operator.add", size + tail * Size(-1), tail, size);
    }
    if (last.second != 1) return combine("_operator.mul", Size::product(last.first, 1), last.second, size);
    const Size factor = Size::symbol(last.first.back());
    return combine("_operator.mul", Size::product({last.first.begin(), last.first.end() - 1}, 1), factor,
                   size);
  }

  Json argument_json(const Argument& argument, const c10::Argument& declared, const Node& node) {
    const std::string type = declared.real_type()->str();
    const auto has = [&](const char* word) { return type.find(word) != std::string::npos; };
    switch (argument.kind) {
      case Argument::Kind::kTensor:
        return argument.tensors[0] == kNone ? Json{{"as_none", true}} : tensor(argument.tensors[0]);
      case Argument::Kind::kTensors: return tensors_json(argument, has("Optional") || has("Tensor?"));
      case Argument::Kind::kInteger: {
        const Size& size = argument.integers[0];
        if (!size.is_constant()) return {{"as_sym_int", symbolic(size)}};
        const std::int64_t number = size.value(graph_.sample);
        if (has("ScalarType")) return {{"as_scalar_type", dtype_number(static_cast<at::ScalarType>(number))}};
        if (has("Layout") && number == static_cast<std::int64_t>(at::kStrided))
          return {{"as_layout", kStrided}};
        if (has("MemoryFormat")) return {{"as_memory_format", number == 0 ? 1 : 4}};
        return {{"as_int", number}};
      }
      case Argument::Kind::kIntegers: return integers_json(argument);
      default: return literal_json(argument.literal, declared, node);
    }
  }

  Json tensors_json(const Argument& argument, bool optional) const {
    Json list = Json::array();
    for (const ValueId id : argument.tensors) {
      if (optional) {
        list.push_back(id == kNone ? Json{{"as_none", true}} : tensor(id));
      } else {
        list.push_back({{"name", name(id)}});
      }
    }
    return {{optional ? "as_optional_tensors" : "as_tensors", list}};
  }

  Json integers_json(const Argument& argument) {
    Json numbers = Json::array(), symbols = Json::array();
    bool constant = true;
    for (const Size& size : argument.integers) {
      constant = constant && size.is_constant();
      symbols.push_back(symbolic(size));
      numbers.push_back(size.value(graph_.sample));
    }
    return constant ? Json{{"as_ints", numbers}} : Json{{"as_sym_ints", symbols}};
  }

  static Json literal_json(const c10::IValue& value, const c10::Argument& declared, const Node& node) {
    if (value.isNone()) return {{"as_none", true}};
    if (value.isBool()) return {{"as_bool", value.toBool()}};
    if (value.isDouble()) return {{"as_float", double_json(value.toDouble())}};
    if (value.isString()) return {{"as_string", value.toStringRef()}};
    if (value.isDevice()) return {{"as_device", device_json(value.toDevice())}};
    throw Error("the argument '", declared.name(), "' of ", node.op.operator_name(),
                " is of a type that .pt2 lacks: ", value.tagKind());
  }

  void add(const Node& node) {
    const c10::FunctionSchema& schema = node.op.schema();
    if (!schema.name().starts_with("aten::"))
      throw Error("the operator ", schema.name(), " is not one of ATen's, which .pt2 needs");
    const std::string overload = schema.overload_name().empty() ? "default" : schema.overload_name();
    Json inputs = Json::array(), outputs = Json::array();
    for (std::size_t i = 0; i < node.arguments.size(); ++i) {
      const c10::Argument& declared = schema.arguments()[i];
      inputs.push_back({{"name", declared.name()},
                        {"arg", argument_json(node.arguments[i], declared, node)},
                        {"kind", declared.kwarg_only() ? kKeyword : kPositional}});
    }
    for (std::size_t i = 0; i < node.results.size(); ++i) {
      const bool list = schema.returns()[i].type()->kind() == c10::TypeKind::ListType;
      if (!list) {
        outputs.push_back(tensor(node.results[i][0]));
        continue;
      }
      Json names = Json::array();
      for (const ValueId id : node.results[i]) names.push_back({{"name", name(id)}});
      outputs.push_back({{"as_tensors", names}});
    }
    nodes_.push_back({{"target", "torch.ops.aten." + schema.name().substr(6) + "." + overload},
                      {"inputs", inputs},
                      {"outputs", outputs},
                      {"metadata", Json::object()}});
  }

  // How Python calls the program: positional tensors in, one tensor or a tuple out.
  Json call_graph() const {
    const Json leaf{{"type", nullptr}, {"context", nullptr}, {"children_spec", Json::array()}};
    const auto tuple = [](const Json& children) {
      return Json{{"type", "builtins.tuple"}, {"context", "null"}, {"children_spec", children}};
    };
    const Json keywords{{"type", "builtins.dict"}, {"context", "[]"}, {"children_spec", Json::array()}};
    const Json in = tuple({tuple(Json(graph_.inputs.size(), leaf)), keywords});
    const Json out = graph_.outputs.size() == 1 ? leaf : tuple(Json(graph_.outputs.size(), leaf));
    Json names = Json::array();
    for (const graph::Input& input : graph_.inputs) names.push_back(identifier(input.name));
    const Json signature{{"inputs", Json::array()},
                         {"outputs", Json::array()},
                         {"in_spec", Json::array({1, in}).dump()},
                         {"out_spec", Json::array({1, out}).dump()},
                         {"forward_arg_names", names}};
    return Json::array({{{"fqn", ""}, {"signature", signature}}});
  }

  Json ranges() const {
    Json ranges = Json::object();
    for (std::size_t k = 0; k < graph_.symbols.size(); ++k) {
      const std::int64_t largest = graph_.symbols[k].largest;
      ranges["s" + std::to_string(k)] = {{"min_val", graph_.symbols[k].smallest},
                                         {"max_val", largest > 0 ? Json(largest) : Json()}};
    }
    return ranges;
  }

  // Python checks that inputs agree in the sizes that they share.
  Json guards() const {
    Json guards = Json::array();
    const auto size_of = [&](std::size_t input, std::size_t dim) {
      return "L['" + identifier(graph_.inputs[input].name) + "'].size()[" + std::to_string(dim) + "]";
    };
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
      for (std::size_t dim = 0; dim < graph_.inputs[i].sizes.size(); ++dim) {
        for (std::size_t k = 0; k < graph_.symbols.size(); ++k) {
          const graph::Symbol& symbol = graph_.symbols[k];
          if (graph_.inputs[i].sizes[dim] == Size::symbol(k) && symbol.input != i)
            guards.push_back(size_of(symbol.input, static_cast<std::size_t>(symbol.dim)) +
                             " == " + size_of(i, dim));
        }
      }
    }
    return guards;
  }

  const Graph& graph_;
  std::vector<std::string> names_;  // of values
  Json nodes_ = Json::array(), size_nodes_ = Json::array(), size_values_ = Json::object();
  std::map<Size, std::string> size_names_;
};

}  // namespace

Json tensor_meta(const at::Tensor& tensor, bool requires_grad) {
  Json sizes = Json::array(), strides = Json::array();
  for (const std::int64_t size : tensor.sizes()) sizes.push_back({{"as_int", size}});
  for (const std::int64_t stride : tensor.strides()) strides.push_back({{"as_int", stride}});
  return meta_json(tensor.scalar_type(), sizes, strides, tensor.device(), requires_grad);
}

Json program(const Graph& graph) { return Program(graph).json(); }

}  // namespace zoo::pt2
