// Each operator of ATen becomes one or a few of ONNX. Two things differ everywhere: ONNX converts no types by
// itself, so that operands are cast to the type of the result; and sizes are tensors there, computed from the
// shapes of the inputs, where -1 and 0 (the input's own) in a reshape do not say them.
#include "models/onnx/translation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <ATen/Functions.h>

#include "data/base/error.h"

namespace zoo::onnx {
namespace {

using graph::Argument;
using graph::Graph;
using graph::Size;
using graph::ValueId;
using Names = std::vector<std::string>;
using Numbers = std::vector<std::int64_t>;

constexpr double kHidden =
    -std::numeric_limits<double>::infinity();  // score of a key that a query does not see

class Translation {
 public:
  Translation(const Graph& graph, File& file) : graph_(graph), file_(file), names_(graph.values.size()) {
    for (const graph::Node& node : graph.nodes) {
      const bool linear = node.op.schema().name() == "aten::linear";
      for (std::size_t i = 0; i < node.arguments.size(); ++i) {
        const auto& used = node.arguments[i].tensors;
        if (!(linear && i == 1)) as_they_are_.insert(used.begin(), used.end());
      }
    }
    for (const graph::Weight& weight : graph.weights) weights_[weight.value] = &weight;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      names_[static_cast<std::size_t>(graph.input_values[i])] = graph.inputs[i].name;
      file.inputs.push_back(port(graph.inputs[i].name, graph.inputs[i].dtype, graph.inputs[i].sizes));
    }
  }

  const graph::Value& value(ValueId id) const { return graph_.values[static_cast<std::size_t>(id)]; }

  void set(ValueId id, const std::string& name) { names_[static_cast<std::size_t>(id)] = name; }

  std::string name(ValueId id) {
    std::string& found = names_[static_cast<std::size_t>(id)];
    if (found.empty()) {
      const graph::Weight& weight = *weights_.at(id);
      file_.initializers.push_back({found = weight.name, weight.tensor});
    }
    return found;
  }

  /// The matrix [in, out] of linear's weight [out, in].
  std::string transposed(ValueId id) {
    const auto weight = weights_.find(id);
    if (weight == weights_.end() || as_they_are_.contains(id))
      return emit("Transpose", {name(id)}, {{"perm", Numbers{1, 0}}});
    const std::string text = weight->second->name + ".transposed";
    if (!std::exchange(written_transposed_[id], true))
      file_.initializers.push_back({text, weight->second->tensor, /*transposed=*/true});
    return text;
  }

  Names emit_all(const std::string& op, Names inputs, std::vector<Attribute> attributes, std::size_t count) {
    Names outputs;
    for (std::size_t i = 0; i < count; ++i) outputs.push_back("value_" + std::to_string(next_++));
    file_.nodes.push_back({op, std::move(inputs), outputs, std::move(attributes)});
    return outputs;
  }

  /// Name of the result. The same call is made once.
  std::string emit(const std::string& op, const Names& inputs,
                   const std::vector<Attribute>& attributes = {}) {
    std::string& result = known_[{op, inputs, attributes}];
    if (result.empty()) result = emit_all(op, inputs, attributes, 1)[0];
    return result;
  }

  std::string constant(const at::Tensor& tensor) {
    const at::Tensor bytes = tensor.contiguous().reshape({-1}).view(at::kByte);
    const Numbers key_bytes(bytes.const_data_ptr<std::uint8_t>(),
                            bytes.const_data_ptr<std::uint8_t>() + bytes.numel());
    std::string& name = constants_[{tensor.scalar_type(), tensor.sizes().vec(), key_bytes}];
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

  /// int64 [1].
  std::string size(const Size& size) {
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

  /// int64 [rank].
  std::string shape(const std::vector<Size>& sizes) {
    Names parts;
    Numbers run;
    const auto end_run = [&] {
      if (!run.empty()) parts.push_back(numbers(std::exchange(run, {})));
    };
    for (const Size& one : sizes) {
      if (one.is_constant()) {
        run.push_back(one.value({}));
        continue;
      }
      end_run();
      parts.push_back(size(one));
    }
    end_run();
    if (parts.empty()) return numbers({});
    return parts.size() == 1 ? parts[0] : emit("Concat", parts, {{"axis", std::int64_t{0}}});
  }

  std::string reshape(const std::string& name, const std::vector<Size>& from, const std::vector<Size>& to) {
    Numbers words;
    std::size_t inferred = 0;
    for (std::size_t i = 0; i < to.size(); ++i) {
      const bool own = i < from.size() && from[i] == to[i];
      words.push_back(to[i].is_constant() ? to[i].value({}) : own ? 0 : -1);
      inferred += static_cast<std::size_t>(words.back() == -1);
    }
    return emit("Reshape", {name, inferred > 1 ? shape(to) : numbers(words)});
  }

  Port port(const std::string& name, at::ScalarType dtype, const std::vector<Size>& sizes) const {
    Port port{name, dtype};
    for (const Size& size : sizes) {
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

  void add_output(const std::string& text, ValueId id) {
    file_.nodes.push_back({"Identity", {name(id)}, {text}});
    file_.outputs.push_back(port(text, value(id).dtype, value(id).sizes));
  }

 private:
  using Constant = std::tuple<at::ScalarType, Numbers, Numbers>;

  const Graph& graph_;
  File& file_;
  Names names_;  // of values; empty: not there yet
  std::map<ValueId, const graph::Weight*> weights_;
  std::set<ValueId> as_they_are_;  // what any operator but linear reads
  std::map<ValueId, bool> written_transposed_;
  std::map<std::tuple<std::string, Names, std::vector<Attribute>>, std::string> known_;
  std::map<Constant, std::string> constants_;
  std::size_t next_ = 0;
};

// A call of an operator, whose arguments are found by their names.
class Call {
 public:
  Call(Translation& translation, const graph::Node& node) : to(translation), node_(node) {}

  Translation& to;

  const graph::Value& result(std::size_t i = 0) const { return to.value(results()[i]); }
  std::vector<ValueId> results() const {
    std::vector<ValueId> all;
    for (const auto& ids : node_.results) all.insert(all.end(), ids.begin(), ids.end());
    return all;
  }

  bool has(const char* name) const {
    const Argument* argument = find(name);
    return argument != nullptr &&
           !(argument->kind == Argument::Kind::kLiteral && argument->literal.isNone()) &&
           !(argument->kind == Argument::Kind::kTensor && argument->tensors[0] == graph::kNone);
  }
  ValueId id(const char* name) const { return at(name).tensors.at(0); }
  const graph::Value& value(const char* name) const { return to.value(id(name)); }
  std::string tensor(const char* name) const { return to.name(id(name)); }
  bool is_tensor(const char* name) const { return at(name).kind == Argument::Kind::kTensor; }
  const Size& size(const char* name) const { return at(name).integers.at(0); }
  std::int64_t integer(const char* name) const {
    const Size& found = size(name);
    if (!found.is_constant()) refuse(name);
    return found.value({});
  }
  Numbers integers(const char* name) const {
    Numbers found;
    for (const Size& one : at(name).integers) {
      if (!one.is_constant()) refuse(name);
      found.push_back(one.value({}));
    }
    return found;
  }
  const c10::IValue& literal(const char* name) const { return at(name).literal; }
  /// A dimension of the tensor `self`, counted from the first.
  std::int64_t dim(const char* name = "dim", std::int64_t extra = 0) const {
    const std::int64_t found = integer(name);
    return found < 0 ? found + static_cast<std::int64_t>(value("self").sizes.size()) + extra : found;
  }
  /// A tensor or a number in a type.
  std::string operand(const char* name, at::ScalarType dtype) const {
    const Argument& argument = at(name);
    if (argument.kind == Argument::Kind::kTensor)
      return to.cast(to.name(argument.tensors[0]), to.value(argument.tensors[0]).dtype, dtype);
    if (argument.kind == Argument::Kind::kInteger) {
      const Size& number = argument.integers[0];
      if (number.is_constant()) return to.number(static_cast<double>(number.value({})), dtype);
      return to.cast(to.emit("Squeeze", {to.size(number)}), at::kLong, dtype);
    }
    if (!argument.literal.isScalar()) refuse(name);
    return to.number(argument.literal.toScalar().toDouble(), dtype);
  }
  const Argument& at(const char* name) const {
    const Argument* found = find(name);
    if (found == nullptr) refuse(name);
    return *found;
  }
  [[noreturn]] void refuse(const char* argument) const {
    throw Error("ONNX has no translation here for the argument '", argument, "' of ", Graph::name_of(node_));
  }

 private:
  const Argument* find(const char* name) const {
    const auto& declared = node_.op.schema().arguments();
    const auto found =
        std::find_if(declared.begin(), declared.end(), [&](const auto& one) { return one.name() == name; });
    return found == declared.end() ? nullptr
                                   : &node_.arguments[static_cast<std::size_t>(found - declared.begin())];
  }

  const graph::Node& node_;
};

// An operator that ONNX has: operands are cast to the type of the result, but for "?condition", a bool, and
// "#index".
struct Row {
  const char* op;
  std::vector<const char*> operands;
  bool has_axis = false;
};
const std::map<std::string, Row> kSame{{"abs", {"Abs", {"self"}}},
                                       {"add", {"Add", {"self", "other"}}},
                                       {"bitwise_and", {"And", {"?self", "?other"}}},
                                       {"bitwise_or", {"Or", {"?self", "?other"}}},
                                       {"ceil", {"Ceil", {"self"}}},
                                       {"clamp", {"Clip", {"self", "min", "max"}}},
                                       {"clamp_max", {"Min", {"self", "max"}}},
                                       {"clamp_min", {"Max", {"self", "min"}}},
                                       {"cos", {"Cos", {"self"}}},
                                       {"div", {"Div", {"self", "other"}}},
                                       {"embedding", {"Gather", {"weight", "#indices"}}},
                                       {"exp", {"Exp", {"self"}}},
                                       {"gather", {"GatherElements", {"self", "#index"}, true}},
                                       {"log", {"Log", {"self"}}},
                                       {"logical_not", {"Not", {"?self"}}},
                                       {"masked_fill", {"Where", {"?mask", "value", "self"}}},
                                       {"matmul", {"MatMul", {"self", "other"}}},
                                       {"mul", {"Mul", {"self", "other"}}},
                                       {"neg", {"Neg", {"self"}}},
                                       {"pow", {"Pow", {"self", "exponent"}}},
                                       {"reciprocal", {"Reciprocal", {"self"}}},
                                       {"relu", {"Relu", {"self"}}},
                                       {"scatter", {"ScatterElements", {"self", "#index", "src"}, true}},
                                       {"sigmoid", {"Sigmoid", {"self"}}},
                                       {"sign", {"Sign", {"self"}}},
                                       {"sin", {"Sin", {"self"}}},
                                       {"softmax", {"Softmax", {"self"}, true}},
                                       {"sqrt", {"Sqrt", {"self"}}},
                                       {"square", {"Mul", {"self", "self"}}},
                                       {"sub", {"Sub", {"self", "other"}}},
                                       {"tanh", {"Tanh", {"self"}}},
                                       {"to", {"Identity", {"self"}}},
                                       {"where", {"Where", {"?condition", "self", "other"}}}};
// Of two, in their common type.
const std::map<std::string, const char*> kComparison{
    {"eq", "Equal"}, {"ge", "GreaterOrEqual"}, {"gt", "Greater"}, {"le", "LessOrEqual"}, {"lt", "Less"}};
const std::set<std::string> kReshapes{"flatten",   "reshape", "squeeze", "unflatten",
                                      "unsqueeze", "view",    "view_as"};

std::string same(const Call& call, const Row& row) {
  const at::ScalarType type = call.result().dtype;
  if (call.has("alpha") && call.integer("alpha") != 1) call.refuse("alpha");  // other * alpha
  Names operands;
  for (const std::string name : row.operands) {
    const std::string plain = name[0] == '?' || name[0] == '#' ? name.substr(1) : name;
    operands.push_back(name[0] == '#'           ? call.tensor(plain.c_str())
                       : name[0] == '?'         ? call.operand(plain.c_str(), at::kBool)
                       : call.has(name.c_str()) ? call.operand(name.c_str(), type)
                                                : "");
  }
  std::vector<Attribute> attributes;
  if (row.has_axis) attributes.emplace_back("axis", call.dim());
  return call.to.emit(row.op, operands, attributes);
}

std::string compared(const Call& call, const char* op) {
  const at::ScalarType self = call.value("self").dtype;
  const at::ScalarType type = call.is_tensor("other") ? at::promote_types(self, call.value("other").dtype)
                              : call.at("other").integers.empty() && at::isIntegralType(self, true)
                                  ? at::kFloat
                              : self == at::kBool ? at::kLong
                                                  : self;
  return call.to.emit(op, {call.operand("self", type), call.operand("other", type)});
}

std::string reduced(const Call& call, const char* op, const Numbers& dims, at::ScalarType type) {
  return call.to.emit(op, {call.operand("self", type), call.to.numbers(dims)},
                      {{"keepdims", std::int64_t{call.literal("keepdim").toBool()}}});
}

std::string transpose(const Call& call, Numbers order) {
  return call.to.emit("Transpose", {call.tensor("self")}, {{"perm", std::move(order)}});
}

std::string swapped(const Call& call, std::int64_t a, std::int64_t b) {
  Numbers order(call.value("self").sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order.at(static_cast<std::size_t>(a)), order.at(static_cast<std::size_t>(b)));
  return transpose(call, order);
}

std::string expanded(const Call& call, const std::string& value) {
  return call.to.emit("Expand", {value, call.to.shape(call.result().sizes)});
}

std::string range(const Call& call) {
  const at::ScalarType type = call.result().dtype;
  return call.to.emit("Range", {call.has("start") ? call.operand("start", type) : call.to.number(0, type),
                                call.operand("end", type),
                                call.has("step") ? call.operand("step", type) : call.to.number(1, type)});
}

std::string sliced(const Call& call) {
  const auto bound = [&](const char* name, std::int64_t otherwise) {
    return call.has(name) ? call.to.size(call.size(name)) : call.to.numbers({otherwise});
  };
  return call.to.emit("Slice", {call.tensor("self"), bound("start", 0),
                                bound("end", std::numeric_limits<std::int64_t>::max()),
                                call.to.numbers({call.dim()}), call.to.numbers({call.integer("step")})});
}

Names split(const Call& call) {
  const std::vector<ValueId> parts = call.results();
  const auto dim = static_cast<std::size_t>(call.dim());
  Numbers sizes;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!call.result(i).sizes[dim].is_constant()) call.refuse("dim");
    sizes.push_back(call.result(i).sizes[dim].value({}));
  }
  return call.to.emit_all("Split", {call.tensor("self"), call.to.numbers(sizes)}, {{"axis", call.dim()}},
                          parts.size());
}

Names unbound(const Call& call) {
  Names parts;
  for (std::size_t i = 0; i < call.results().size(); ++i)
    parts.push_back(call.to.emit("Gather",
                                 {call.tensor("self"), call.to.number(static_cast<std::int64_t>(i))},
                                 {{"axis", call.dim()}}));
  return parts;
}

// Each element of a dimension `repeats` times.
std::string repeated(const Call& call) {
  std::vector<Size> sizes = call.value("self").sizes;
  const std::int64_t after = call.dim() + 1;
  sizes.insert(sizes.begin() + after, Size(call.integer("repeats")));
  const std::string apart = call.to.emit("Unsqueeze", {call.tensor("self"), call.to.numbers({after})});
  return call.to.reshape(call.to.emit("Expand", {apart, call.to.shape(sizes)}), sizes, call.result().sizes);
}

std::string normalized(const Call& call) {
  if (call.integers("normalized_shape").size() != 1) call.refuse("normalized_shape");
  const at::ScalarType type = call.result().dtype;
  Names inputs{call.tensor("input"),
               call.has("weight") ? call.tensor("weight")
                                  : call.to.constant(at::ones(call.integers("normalized_shape"), type))};
  if (call.has("bias")) inputs.push_back(call.tensor("bias"));
  return call.to.emit(
      "LayerNormalization", inputs,
      {{"axis", std::int64_t{-1}}, {"epsilon", static_cast<float>(call.literal("eps").toDouble())}});
}

std::string linear(const Call& call) {
  const std::string product =
      call.to.emit("MatMul", {call.tensor("input"), call.to.transposed(call.id("weight"))});
  return call.has("bias") ? call.to.emit("Add", {product, call.tensor("bias")}) : product;
}

// softmax(scale Q K^T + mask) V. Grouped heads become a dimension of their own: queries [B, Hkv, G, T, D]
// beside keys [B, Hkv, 1, S, D].
std::string attention(const Call& call) {
  Translation& to = call.to;
  const graph::Value &query = call.value("query"), &key = call.value("key");
  const at::ScalarType type = query.dtype;
  if (query.sizes.size() != 4) call.refuse("query");
  const std::int64_t width = query.sizes[3].value({}), heads = query.sizes[1].value({}),
                     groups = key.sizes[1].value({});
  const double scale =
      call.has("scale") ? call.literal("scale").toDouble() : 1 / std::sqrt(static_cast<double>(width));
  const bool grouped = groups != heads;
  std::string queries = to.emit("Mul", {call.tensor("query"), to.number(scale, type)});
  std::string keys = to.emit("Transpose", {call.tensor("key")}, {{"perm", Numbers{0, 1, 3, 2}}});
  std::string values = call.tensor("value");
  const std::string second = to.numbers({2});
  if (grouped) {
    queries = to.emit("Reshape", {queries, to.numbers({0, groups, heads / groups, -1, width})});
    keys = to.emit("Unsqueeze", {keys, second});
    values = to.emit("Unsqueeze", {values, second});
  }
  std::string scores = to.emit("MatMul", {queries, keys});
  if (call.literal("is_causal").toBool()) {
    const std::string ones =
        to.emit("Expand", {to.number(1, at::kBool), to.shape({query.sizes[2], key.sizes[2]})});
    const std::string seen =
        to.emit("Trilu", {ones, to.number(std::int64_t{0})}, {{"upper", std::int64_t{0}}});
    scores = to.emit("Where", {seen, scores, to.number(kHidden, type)});
  }
  if (call.has("attn_mask")) {
    const graph::Value& mask = call.value("attn_mask");
    std::string seen = call.tensor("attn_mask");
    if (grouped && mask.sizes.size() == 4) {
      const bool same = mask.sizes[1] == Size(1);
      seen = same ? to.emit("Unsqueeze", {seen, second})
                  : to.emit("Reshape", {seen, to.shape({mask.sizes[0], groups, heads / groups, mask.sizes[2],
                                                        mask.sizes[3]})});
    }
    scores = mask.dtype == at::kBool ? to.emit("Where", {seen, scores, to.number(kHidden, type)})
                                     : to.emit("Add", {scores, to.cast(seen, mask.dtype, type)});
  }
  const std::string weights = to.emit("Softmax", {scores}, {{"axis", std::int64_t{-1}}});
  const std::string sum = to.emit("MatMul", {weights, values});
  return grouped
             ? to.emit("Reshape", {sum, to.numbers({0, heads, -1, call.value("value").sizes[3].value({})})})
             : sum;
}

std::string triangle(const Call& call, bool upper) {
  return call.to.emit("Trilu", {call.tensor("self"), call.operand("diagonal", at::kLong)},
                      {{"upper", std::int64_t{upper}}});
}

std::string joined(const Call& call) {
  Names parts;
  for (const ValueId id : call.at("tensors").tensors)
    parts.push_back(call.to.cast(call.to.name(id), call.to.value(id).dtype, call.result().dtype));
  return call.to.emit("Concat", parts, {{"axis", call.integer("dim")}});
}

using Translate = std::string (*)(const Call&);
const std::map<std::string, Translate> kOthers{
    {"any",
     [](const Call& call) {
       return call.to.cast(reduced(call, "ReduceMax", {call.dim()}, at::kInt), at::kInt, at::kBool);
     }},
    {"arange", range},
    {"argmax",
     [](const Call& call) {
       return call.to.emit(
           "ArgMax", {call.tensor("self")},
           {{"axis", call.dim()}, {"keepdims", std::int64_t{call.literal("keepdim").toBool()}}});
     }},
    {"cat", joined},
    {"cumsum",
     [](const Call& call) {
       return call.to.emit("CumSum", {call.operand("self", call.result().dtype), call.to.number(call.dim())});
     }},
    {"expand", [](const Call& call) { return expanded(call, call.tensor("self")); }},
    {"fill", [](const Call& call) { return expanded(call, call.operand("value", call.result().dtype)); }},
    {"full",
     [](const Call& call) { return expanded(call, call.operand("fill_value", call.result().dtype)); }},
    {"gelu",
     [](const Call& call) {
       return call.to.emit("Gelu", {call.tensor("self")},
                           {{"approximate", call.literal("approximate").toStringRef()}});
     }},
    {"layer_norm", normalized},
    {"linear", linear},
    {"mean",
     [](const Call& call) { return reduced(call, "ReduceMean", call.integers("dim"), call.result().dtype); }},
    {"ne", [](const Call& call) { return call.to.emit("Not", {compared(call, "Equal")}); }},
    {"ones", [](const Call& call) { return expanded(call, call.to.number(1, call.result().dtype)); }},
    {"permute", [](const Call& call) { return transpose(call, call.integers("dims")); }},
    {"repeat_interleave", repeated},
    {"rsqrt",
     [](const Call& call) {
       return call.to.emit("Reciprocal", {call.to.emit("Sqrt", {call.tensor("self")})});
     }},
    {"scaled_dot_product_attention", attention},
    {"select",
     [](const Call& call) {
       return call.to.emit("Gather", {call.tensor("self"), call.to.number(call.integer("index"))},
                           {{"axis", call.dim()}});
     }},
    {"silu",
     [](const Call& call) {
       return call.to.emit("Mul", {call.tensor("self"), call.to.emit("Sigmoid", {call.tensor("self")})});
     }},
    {"slice", sliced},
    {"sum",
     [](const Call& call) { return reduced(call, "ReduceSum", call.integers("dim"), call.result().dtype); }},
    {"t", [](const Call& call) { return swapped(call, 0, 1); }},
    {"transpose", [](const Call& call) { return swapped(call, call.dim("dim0"), call.dim("dim1")); }},
    {"tril", [](const Call& call) { return triangle(call, /*upper=*/false); }},
    {"triu", [](const Call& call) { return triangle(call, /*upper=*/true); }},
    {"zeros", [](const Call& call) { return expanded(call, call.to.number(0, call.result().dtype)); }},
    {"zeros_like", [](const Call& call) { return expanded(call, call.to.number(0, call.result().dtype)); }}};

Names translated(const Call& call, const graph::Node& node) {
  const std::string name = node.op.schema().name().substr(node.op.schema().name().find("::") + 2);
  if (const auto found = kSame.find(name); found != kSame.end()) return {same(call, found->second)};
  if (const auto found = kComparison.find(name); found != kComparison.end())
    return {compared(call, found->second)};
  if (const auto found = kOthers.find(name); found != kOthers.end()) return {found->second(call)};
  if (kReshapes.contains(name))
    return {call.to.reshape(call.tensor("self"), call.value("self").sizes, call.result().sizes)};
  if (name == "chunk" || name == "split_with_sizes") return split(call);
  if (name == "unbind") return unbound(call);
  if (name == "topk")
    return call.to.emit_all("TopK", {call.tensor("self"), call.to.numbers({call.integer("k")})},
                            {{"axis", call.dim()}}, 2);
  throw Error("the operator ", node.op.schema().name(), " has no translation to ONNX");
}

}  // namespace

File translate(const Graph& graph, const std::string& file, const Names& outputs) {
  File result{.name = file};
  Translation translation(graph, result);
  for (const graph::Node& node : graph.nodes) {
    const Call call(translation, node);
    const Names names = translated(call, node);
    const std::vector<ValueId> ids = call.results();
    for (std::size_t i = 0; i < ids.size(); ++i) translation.set(ids[i], names.at(i));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) translation.add_output(outputs[i], graph.outputs.at(i));
  std::set<std::string> used;  // ONNX Runtime warns of others
  for (const Node& node : result.nodes) used.insert(node.inputs.begin(), node.inputs.end());
  std::erase_if(result.initializers, [&](const Initializer& one) { return !used.contains(one.name); });
  return result;
}

}  // namespace zoo::onnx
