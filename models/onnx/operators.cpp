// Each operator of ATen becomes one or a few of ONNX. ONNX converts no types by itself, so that operands are
// cast to the type of the result; and its sizes are tensors, computed from the shapes of the inputs.
#include <cmath>
#include <limits>

#include <ATen/ops/ones.h>
#include <c10/core/ScalarType.h>

#include "data/base/error.h"
#include "data/base/sizes.h"
#include "models/onnx/file_builder.h"
#include "models/onnx/operator_call.h"

namespace zoo::onnx {
namespace {

using graph::Size;
using graph::ValueId;

// The score of a key that a query does not see.
constexpr double kHidden = -std::numeric_limits<double>::infinity();

// An argument, and the type in which ONNX takes it: that of the result, bool, or the argument's own.
struct Operand {
  enum Type { kOfResult, kBool, kOwn };
  const char* name;
  Type type = kOfResult;
};
// An operator that ONNX has, too.
struct Row {
  const char* op;
  std::vector<Operand> operands;
  bool has_axis = false;
};
const std::map<std::string, Row> kSame{
    {"abs", {"Abs", {{"self"}}}},
    {"add", {"Add", {{"self"}, {"other"}}}},
    {"ceil", {"Ceil", {{"self"}}}},
    {"clamp", {"Clip", {{"self"}, {"min"}, {"max"}}}},
    {"clamp_max", {"Min", {{"self"}, {"max"}}}},
    {"clamp_min", {"Max", {{"self"}, {"min"}}}},
    {"cos", {"Cos", {{"self"}}}},
    {"div", {"Div", {{"self"}, {"other"}}}},
    {"embedding", {"Gather", {{"weight"}, {"indices", Operand::kOwn}}}},
    {"gather", {"GatherElements", {{"self"}, {"index", Operand::kOwn}}, true}},
    {"log", {"Log", {{"self"}}}},
    {"logical_not", {"Not", {{"self", Operand::kBool}}}},
    {"masked_fill", {"Where", {{"mask", Operand::kBool}, {"value"}, {"self"}}}},
    {"matmul", {"MatMul", {{"self"}, {"other"}}}},
    {"mul", {"Mul", {{"self"}, {"other"}}}},
    {"neg", {"Neg", {{"self"}}}},
    {"pow", {"Pow", {{"self"}, {"exponent"}}}},
    {"reciprocal", {"Reciprocal", {{"self"}}}},
    {"relu", {"Relu", {{"self"}}}},
    {"scatter", {"ScatterElements", {{"self"}, {"index", Operand::kOwn}, {"src"}}, true}},
    {"sigmoid", {"Sigmoid", {{"self"}}}},
    {"sign", {"Sign", {{"self"}}}},
    {"sin", {"Sin", {{"self"}}}},
    {"softmax", {"Softmax", {{"self"}}, true}},
    {"square", {"Mul", {{"self"}, {"self"}}}},
    {"sub", {"Sub", {{"self"}, {"other"}}}},
    {"tanh", {"Tanh", {{"self"}}}},
    {"to", {"Identity", {{"self"}}}},
    {"where", {"Where", {{"condition", Operand::kBool}, {"self"}, {"other"}}}},
};
// Of two, in their common type.
const std::map<std::string, const char*> kComparison{
    {"eq", "Equal"}, {"ge", "GreaterOrEqual"}, {"gt", "Greater"}, {"le", "LessOrEqual"}, {"lt", "Less"}};
const std::set<std::string> kReshapes{"flatten",   "reshape", "squeeze", "unflatten",
                                      "unsqueeze", "view",    "view_as"};

std::string same(const Call& call, const Row& row) {
  if (call.has("alpha") && call.integer("alpha") != 1) call.refuse("alpha");  // other * alpha
  if (call.has("rounding_mode")) call.refuse("rounding_mode");
  Names operands;
  for (const Operand& operand : row.operands) {
    const at::ScalarType type = operand.type == Operand::kBool ? at::kBool : call.result().dtype;
    const bool own = operand.type == Operand::kOwn;
    operands.push_back(!call.has(operand.name) ? ""
                       : own                   ? call.tensor(operand.name)
                                               : call.operand(operand.name, type));
  }
  std::vector<Attribute> attributes;
  if (row.has_axis) attributes.emplace_back("axis", call.dim());
  return call.to.emit(row.op, operands, attributes);
}

// "&" and "|" of integers work on their bits, for which these are not.
std::string logical(const Call& call, const char* op) {
  if (call.result().dtype != at::kBool) call.refuse("self");
  return call.to.emit(op, {call.tensor("self"), call.tensor("other")});
}

std::string compared(const Call& call, const char* op) {
  const at::ScalarType other = call.is_tensor("other")             ? call.value("other").dtype
                               : call.at("other").integers.empty() ? at::kFloat
                                                                   : at::kLong;
  const at::ScalarType type = at::promote_types(call.value("self").dtype, other);
  return call.to.emit(op, {call.operand("self", type), call.operand("other", type)});
}

std::string reduced(const Call& call, const char* op, at::ScalarType type) {
  return call.to.emit(op, {call.operand("self", type), call.to.numbers(call.integers("dim"))},
                      {{"keepdims", std::int64_t{call.literal("keepdim").toBool()}}});
}

std::string transpose(const Call& call, Numbers order) {
  return call.to.emit("Transpose", {call.tensor("self")}, {{"perm", std::move(order)}});
}

std::string swapped(const Call& call, std::int64_t a, std::int64_t b) {
  Numbers order = indices_below<std::int64_t>(call.value("self").sizes.size());
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

std::string selected(const Call& call, std::int64_t index) {
  return call.to.emit("Gather", {call.tensor("self"), call.to.number(index)}, {{"axis", call.dim()}});
}

Names unbound(const Call& call) {
  Names parts;
  for (std::int64_t i = 0; i < std::ssize(call.results()); ++i) parts.push_back(selected(call, i));
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
  FileBuilder& to = call.to;
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
  if (grouped) {
    queries = to.emit("Reshape", {queries, to.numbers({0, groups, heads / groups, -1, width})});
    keys = to.emit("Unsqueeze", {keys, to.numbers({2})});
    values = to.emit("Unsqueeze", {values, to.numbers({2})});
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
      seen = same ? to.emit("Unsqueeze", {seen, to.numbers({2})})
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
       return call.to.cast(reduced(call, "ReduceMax", at::kInt), at::kInt, at::kBool);
     }},
    {"arange", range},
    {"argmax",
     [](const Call& call) {
       return call.to.emit(
           "ArgMax", {call.tensor("self")},
           {{"axis", call.dim()}, {"keepdims", std::int64_t{call.literal("keepdim").toBool()}}});
     }},
    {"bitwise_and", [](const Call& call) { return logical(call, "And"); }},
    {"bitwise_or", [](const Call& call) { return logical(call, "Or"); }},
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
    {"mean", [](const Call& call) { return reduced(call, "ReduceMean", call.result().dtype); }},
    {"ne", [](const Call& call) { return call.to.emit("Not", {compared(call, "Equal")}); }},
    {"ones", [](const Call& call) { return expanded(call, call.to.number(1, call.result().dtype)); }},
    {"permute", [](const Call& call) { return transpose(call, call.integers("dims")); }},
    {"repeat_interleave", repeated},
    {"rsqrt",
     [](const Call& call) {
       return call.to.emit("Reciprocal", {call.to.emit("Sqrt", {call.tensor("self")})});
     }},
    {"scaled_dot_product_attention", attention},
    {"select", [](const Call& call) { return selected(call, call.integer("index")); }},
    {"silu",
     [](const Call& call) {
       return call.to.emit("Mul", {call.tensor("self"), call.to.emit("Sigmoid", {call.tensor("self")})});
     }},
    {"slice", sliced},
    {"sum", [](const Call& call) { return reduced(call, "ReduceSum", call.result().dtype); }},
    {"t", [](const Call& call) { return swapped(call, 0, 1); }},
    {"transpose", [](const Call& call) { return swapped(call, call.dim("dim0"), call.dim("dim1")); }},
    {"tril", [](const Call& call) { return triangle(call, /*upper=*/false); }},
    {"triu", [](const Call& call) { return triangle(call, /*upper=*/true); }},
    {"zeros", [](const Call& call) { return expanded(call, call.to.number(0, call.result().dtype)); }},
    {"zeros_like", [](const Call& call) { return expanded(call, call.to.number(0, call.result().dtype)); }}};

}  // namespace

Names translated(FileBuilder& builder, const graph::Node& node) {
  const Call call(builder, node);
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
    return call.to.emit_all(
        "TopK", {call.tensor("self"), call.to.numbers({call.integer("k")})},
        {{"axis", call.dim()}, {"largest", std::int64_t{call.literal("largest").toBool()}}}, 2);
  throw Error("the operator ", node.op.schema().name(), " has no translation to ONNX");
}

}  // namespace zoo::onnx
