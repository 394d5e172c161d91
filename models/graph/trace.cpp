// LibTorch's dispatcher calls a kernel by the keys of the tensors and those that the thread includes, highest
// first. A key that nothing else uses, TESTING_ONLY_GenericMode, is above all others: its kernel for every
// operator records the call, then runs the operator without the key, so that inner calls are not recorded.
#include "models/graph/trace.h"

#include <algorithm>
#include <unordered_map>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/ScopeExit.h>
#include <torch/library.h>

#include "data/base/error.h"
#include "data/base/sizes.h"
#include "models/ops/tracing.h"

namespace zoo::graph {
namespace {

constexpr c10::DispatchKey kKey = c10::DispatchKey::TESTING_ONLY_GenericMode;

class Recorder;
thread_local Recorder* recorder = nullptr;

std::vector<Size> sizes_of(c10::IntArrayRef numbers) { return {numbers.begin(), numbers.end()}; }

// One trace, whose sizes are numbers.
class Recorder {
 public:
  Graph graph;

  ValueId add(const at::Tensor& tensor) {
    graph.values.push_back({.dtype = tensor.scalar_type(),
                            .device = tensor.device(),
                            .sizes = sizes_of(tensor.sizes()),
                            .strides = sizes_of(tensor.strides())});
    kept_.push_back(tensor);
    return known_[tensor.unsafeGetTensorImpl()] = static_cast<ValueId>(kept_.size()) - 1;
  }

  ValueId id_of(const at::Tensor& tensor) {
    if (!tensor.defined()) return kNone;
    const auto found = known_.find(tensor.unsafeGetTensorImpl());
    if (found != known_.end()) return found->second;
    const std::string name = "constant_" + std::to_string(graph.weights.size());
    graph.weights.push_back({name, Weight::Kind::kConstant, tensor.clone(), add(tensor)});
    return graph.weights.back().value;
  }

  Argument argument(const c10::IValue& value) {
    using Kind = Argument::Kind;
    if (value.isTensor()) return {.kind = Kind::kTensor, .tensors = {id_of(value.toTensor())}};
    if (value.isInt()) return {.kind = Kind::kInteger, .integers = {Size(value.toInt())}};
    if (value.isIntList()) return {.kind = Kind::kIntegers, .integers = sizes_of(value.toIntVector())};
    if (!value.isTensorList() && !value.isOptionalTensorList()) return {.literal = value};
    Argument list{.kind = Kind::kTensors};
    for (const c10::IValue& element : value.toListRef())
      list.tensors.push_back(element.isTensor() ? id_of(element.toTensor()) : kNone);
    return list;
  }

  void call(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
    const std::string& name = op.schema().name();
    if (name.starts_with("aten::empty")) return allocate(op, stack);
    const auto first = static_cast<std::ptrdiff_t>(stack.size() - op.schema().arguments().size());
    Node node{.op = functional(op, stack.begin() + first)};
    for (auto at = stack.begin() + first; at != stack.end(); ++at) node.arguments.push_back(argument(*at));
    op.callBoxed(stack);
    for (auto at = stack.begin() + first; at != stack.end(); ++at) {
      if (!at->isTensor() && !at->isTensorList())
        throw Error("the operator ", name,
                    " reads the values of a tensor, which a graph for all inputs cannot");
    }
    // x.to(its own type) is x.
    const bool writes = node.op.operator_name() != op.operator_name();
    if (!writes && stack.size() == static_cast<std::size_t>(first) + 1 && stack.back().isTensor() &&
        known_.contains(stack.back().toTensor().unsafeGetTensorImpl()))
      return;
    for (auto at = stack.begin() + first; at != stack.end(); ++at) {
      std::vector<ValueId>& ids = node.results.emplace_back();
      if (at->isTensor()) {
        ids.push_back(add(at->toTensor()));
      } else {
        for (const at::Tensor& tensor : at->toTensorVector()) ids.push_back(add(tensor));
      }
    }
    graph.nodes.push_back(std::move(node));
  }

 private:
  // What the tensor holds comes later: from an operator that fills it, or from code that no operator sees.
  void allocate(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
    const bool like = op.schema().name() == "aten::empty_like";
    std::optional<Node> zeros;
    if (like || op.schema().overload_name() == "memory_format") {
      zeros.emplace(Node{.op = c10::Dispatcher::singleton().findSchemaOrThrow(
                             like ? "aten::zeros_like" : "aten::zeros", "")});
      const std::size_t first = stack.size() - op.schema().arguments().size();
      // The first arguments are the same, empty() has a memory_format more.
      for (std::size_t i = 0; i < zeros->op.schema().arguments().size(); ++i)
        zeros->arguments.push_back(argument(stack[first + i]));
    }
    op.callBoxed(stack);
    if (zeros) unfilled_.emplace_back(stack.back().toTensor(), std::move(*zeros));
  }

  // An allocated tensor that an operator is about to fill starts as zeros.
  void start(const at::Tensor& target) {
    const auto found = std::find_if(unfilled_.begin(), unfilled_.end(),
                                    [&](const auto& entry) { return entry.first.is_same(target); });
    if (found == unfilled_.end() || known_.contains(target.unsafeGetTensorImpl())) return;
    found->second.results = {{add(target)}};
    graph.nodes.push_back(std::move(found->second));
    unfilled_.erase(found);
  }

  // The operator itself, or the one that returns what this one writes into its first argument.
  c10::OperatorHandle functional(const c10::OperatorHandle& op, torch::jit::Stack::const_iterator arguments) {
    const auto& schema = op.schema();
    const bool writes = std::ranges::any_of(schema.arguments(), [](const c10::Argument& argument) {
      return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    });
    if (!writes) return op;
    c10::OperatorName name = op.operator_name();
    if (name.name.ends_with("_") && arguments->isTensor()) {
      name.name.pop_back();
      const at::Tensor& target = arguments->toTensor();
      const bool viewed = std::any_of(kept_.begin(), kept_.end(), [&](const at::Tensor& other) {
        return other.is_alias_of(target) && !other.is_same(target);
      });
      const auto found = c10::Dispatcher::singleton().findSchema(name);
      if (name.name == "aten::fill" || name.name == "aten::zero" || name.name == "aten::copy") start(target);
      if (found && !viewed) return *found;
    }
    throw Error("the operator ", schema.name(),
                " writes into a tensor with views, which no graph can express");
  }

  std::vector<std::pair<at::Tensor, Node>> unfilled_;
  std::vector<at::Tensor> kept_;  // by ValueId; also keeps each address for one tensor
  std::unordered_map<const c10::TensorImpl*, ValueId> known_;
};

void record(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard inner(kKey);
  recorder->call(op, *stack);
}

void register_kernel() {
  static const torch::Library library = [] {
    torch::Library made(torch::Library::IMPL, "_", kKey, __FILE__, __LINE__);
    made.fallback(torch::CppFunction::makeFromBoxedFunction<&record>());
    return made;
  }();
}

Graph trace_at(const torch::nn::Module& module, const TraceRequest& request,
               const std::vector<std::int64_t>& point) {
  Recorder trace;
  for (const auto& item : module.named_parameters())
    trace.graph.weights.push_back(
        {item.key(), Weight::Kind::kParameter, item.value(), trace.add(item.value())});
  for (const auto& item : module.named_buffers())
    trace.graph.weights.push_back({item.key(), Weight::Kind::kBuffer, item.value(), trace.add(item.value())});
  std::vector<at::Tensor> inputs;
  for (const Input& input : request.inputs) {
    std::vector<std::int64_t> sizes;
    for (const Size& size : input.sizes) sizes.push_back(size.value(point));
    const std::int64_t count = c10::multiply_integers(sizes);
    // Differs between positions and points, so that the trace notices what depends on it outside operators.
    const at::Tensor values =
        at::arange(point.back(), point.back() + count).mul(7919).remainder(input.bound).view(sizes);
    inputs.push_back(values.to(at::TensorOptions(trace.graph.values[0].device).dtype(input.dtype)));
    if (inputs.back().is_floating_point()) inputs.back().div_(input.bound);
    trace.graph.input_values.push_back(trace.add(inputs.back()));
  }
  recorder = &trace;
  const auto recorded = c10::make_scope_exit([] { recorder = nullptr; });
  const ops::Tracing tracing;
  std::vector<at::Tensor> outputs;
  {
    const c10::impl::IncludeDispatchKeyGuard on(kKey);
    outputs = request.forward(inputs);
  }
  for (const at::Tensor& output : outputs) trace.graph.outputs.push_back(trace.id_of(output));
  return std::move(trace.graph);
}

bool same(const Argument& a, const Argument& b) {
  return a.kind == b.kind && a.tensors == b.tensors && a.integers.size() == b.integers.size() &&
         (a.kind != Argument::Kind::kLiteral || a.literal == b.literal);
}

std::string reader_of(const Graph& graph, ValueId id) {
  for (const Node& node : graph.nodes) {
    for (const Argument& argument : node.arguments)
      if (std::count(argument.tensors.begin(), argument.tensors.end(), id) > 0)
        return c10::toString(node.op.operator_name());
  }
  return "nothing";
}

// Throws Error unless both have the same nodes and constants, except for integers.
void check_same(const Graph& a, const Graph& b) {
  for (std::size_t i = 0; i < std::min(a.nodes.size(), b.nodes.size()); ++i) {
    const Node &x = a.nodes[i], &y = b.nodes[i];
    if (x.op.operator_name() != y.op.operator_name() || x.results != y.results ||
        !std::equal(x.arguments.begin(), x.arguments.end(), y.arguments.begin(), y.arguments.end(), same))
      throw Error("the operators depend on the sizes of the inputs: number ", i, " is ", x.op.operator_name(),
                  " or ", y.op.operator_name());
  }
  if (a.nodes.size() != b.nodes.size() || a.outputs != b.outputs || a.weights.size() != b.weights.size())
    throw Error("the operators depend on the sizes of the inputs: ", a.nodes.size(), " or ", b.nodes.size());
  for (std::size_t i = 0; i < a.weights.size(); ++i) {
    const at::Tensor &x = a.weights[i].tensor, &y = b.weights[i].tensor;
    if (!x.is_same(y) && !(x.sizes() == y.sizes() && x.equal(y)))
      throw Error("a constant of the forward pass, read by ", reader_of(a, a.weights[i].value),
                  ", depends on the inputs");
  }
}

// All traces; sizes of the first become polynomials.
struct Solver {
  std::vector<std::vector<std::int64_t>> points, corners;

  std::optional<Size> solve(const std::vector<std::int64_t>& numbers) const {
    std::optional<Size> size = Size::solve(corners, {numbers.begin(), numbers.end() - 1});
    return size && size->value(points.back()) == numbers.back() ? size : std::nullopt;
  }

  bool fits(const Size& size, const std::vector<std::int64_t>& numbers) const {
    for (std::size_t i = 0; i < points.size(); ++i)
      if (size.value(points[i]) != numbers[i]) return false;
    return true;
  }
};

// Number i of the vector that `of` finds in each graph.
template <class Of>
std::vector<std::int64_t> numbers(const std::vector<Graph>& traces, std::size_t i, const Of& of) {
  std::vector<std::int64_t> result;
  for (const Graph& trace : traces) result.push_back(of(trace)[i].value({}));
  return result;
}

// The stride of a dense tensor is the product of the sizes inside, of a degree that two points do not show.
void solve_strides(const std::vector<Graph>& traces, const Solver& solver, std::size_t id, Value& value) {
  const std::vector<Size>& first = traces[0].values[id].strides;
  std::vector<std::size_t> order = indices_below(first.size());
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return first[i].value({}); });
  Size inside = 1;
  for (const std::size_t i : order) {
    const auto found = numbers(traces, i, [&](const Graph& graph) { return graph.values[id].strides; });
    value.strides[i] = solver.fits(inside, found) ? inside : solver.solve(found).value_or(inside);
    inside = value.strides[i] * value.sizes[i];
  }
}

bool takes_symbols(const c10::Argument& argument) {
  const std::string type = argument.real_type()->str();
  return type.find("SymInt") != std::string::npos || type.find("Scalar") != std::string::npos;
}

void solve(const std::vector<Graph>& traces, const Solver& solver, Graph& graph) {
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    for (std::size_t a = 0; a < node.arguments.size(); ++a) {
      const c10::Argument& declared = node.op.schema().arguments()[a];
      for (std::size_t i = 0; i < node.arguments[a].integers.size(); ++i) {
        const auto size = solver.solve(
            numbers(traces, i, [&](const Graph& trace) { return trace.nodes[n].arguments[a].integers; }));
        if (!size || !(size->is_constant() || takes_symbols(declared)))
          throw Error("the argument '", declared.name(), "' of ", node.op.operator_name(),
                      size ? " takes a constant, and depends on the sizes of the inputs"
                           : " does not follow from the sizes of the inputs");
        node.arguments[a].integers[i] = *size;
      }
    }
  }
  for (std::size_t id = 0; id < graph.values.size(); ++id) {
    Value& value = graph.values[id];
    for (std::size_t i = 0; i < value.sizes.size(); ++i) {
      const auto size =
          solver.solve(numbers(traces, i, [&](const Graph& trace) { return trace.values[id].sizes; }));
      if (!size) throw Error("a tensor's size does not follow from the sizes of the inputs");
      value.sizes[i] = *size;
    }
    solve_strides(traces, solver, id, value);
  }
}

}  // namespace

Graph trace(const torch::nn::Module& module, const TraceRequest& request) {
  register_kernel();
  const at::NoGradGuard no_grad;
  Solver solver;
  for (const auto& values : request.points) solver.corners.push_back({values[0], values[1]});
  for (std::size_t i = 0; i < std::size_t{1} << request.points.size(); ++i) {
    auto& point = solver.points.emplace_back();
    for (std::size_t k = 0; k < request.points.size(); ++k) point.push_back(request.points[k][i >> k & 1]);
  }
  auto& check = solver.points.emplace_back();
  for (const auto& values : request.points) check.push_back(values[2]);
  std::vector<Graph> traces;
  for (const auto& point : solver.points) traces.push_back(trace_at(module, request, point));
  Graph graph = traces[0];
  for (const Graph& other : traces) check_same(graph, other);
  solve(traces, solver, graph);
  graph.symbols = request.symbols;
  graph.sample = solver.points[0];
  graph.inputs = request.inputs;
  return graph;
}

}  // namespace zoo::graph
