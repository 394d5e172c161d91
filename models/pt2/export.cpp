#include "models/pt2/export.h"

#include <algorithm>
#include <array>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones_like.h>

#include "data/base/error.h"
#include "models/graph/trace.h"
#include "models/pt2/archive.h"

namespace zoo {
namespace {

using graph::Size;

// Three lengths in (least, largest], the first primes if they fit: no other size of the model follows them.
std::vector<std::int64_t> lengths(std::int64_t least, std::int64_t largest) {
  std::vector<std::int64_t> found;
  const auto is_prime = [](std::int64_t n) {
    for (std::int64_t d = 2; d * d <= n; ++d) {
      if (n % d == 0) return false;
    }
    return n > 1;
  };
  for (std::int64_t n = std::max<std::int64_t>(least + 1, 5); n <= largest && found.size() < 3; ++n) {
    if (is_prime(n)) found.push_back(n);
  }
  if (found.size() == 3) return found;
  if (largest - least < 3)
    throw Error("a context of ", largest, " positions is too short to export as .pt2: expected ", least + 3);
  return {largest - 2, largest - 1, largest};
}

graph::TraceRequest request_of(Model& model) {
  const TransformerConfig& config = model.config();
  const bool two_stacks = config.shape == Shape::kEncoderDecoder;
  const std::int64_t longest = config.max_length();
  // An encoder's window hides nothing from short inputs. A single query needs no causal mask.
  const bool window = config.shape == Shape::kEncoder && config.sliding_window > 0;
  const std::int64_t least = window ? config.sliding_window / 2 + 1 : 1;
  const Size batch = Size::symbol(0), length = Size::symbol(1);
  graph::TraceRequest request{
      .symbols = {{"batch", 0, 0}, {"length", 0, 1, longest}},
      .inputs = {{"input_ids", {batch, length}, config.vocab_size}, {"attention_mask", {batch, length}}},
      .points = {{2, 3, 5}, lengths(window && longest <= least ? 1 : least, longest)}};
  if (two_stacks) {
    request.symbols.push_back({"decoder_length", 2, 1, longest});
    request.inputs.push_back({"decoder_input_ids", {batch, Size::symbol(2)}, config.vocab_size});
    request.points.push_back(lengths(1, longest));
    std::reverse(request.points.back().begin(), request.points.back().end());
  }
  request.forward = [&model](const std::vector<at::Tensor>& inputs) {
    return exported_outputs(
        model.forward({.input_ids = inputs[0],
                       .attention_mask = inputs[1],
                       .decoder_input_ids = inputs.size() > 2 ? inputs[2] : at::Tensor()}));
  };
  return request;
}

graph::Graph traced(const Model& model, const graph::TraceRequest& request) {
  try {
    return graph::trace(model, request);
  } catch (const Error& error) {
    throw Error("this model cannot be exported as .pt2: ", error.what());
  }
}

}  // namespace

graph::Graph export_pt2(Model& model, const std::filesystem::path& file) {
  const bool was_training = model.is_training();
  model.eval();
  const graph::TraceRequest request = request_of(model);
  graph::Graph graph = traced(model, request);
  model.train(was_training);
  std::vector<std::int64_t> point;
  for (const auto& values : request.points) point.push_back(values[0]);
  pt2::write_archive(graph, point, file);
  return graph;
}

VerifyReport verify_pt2(const graph::Graph& graph, Model& model) {
  return verify_outputs(
      [&](const ModelInputs& inputs) {
        const at::Tensor& mask = inputs.attention_mask;
        std::vector<at::Tensor> given{inputs.input_ids,
                                      mask.defined() ? mask : at::ones_like(inputs.input_ids)};
        if (inputs.decoder_input_ids.defined()) given.push_back(inputs.decoder_input_ids);
        return graph::run(graph, given);
      },
      model);
}

bool is_pt2(const std::filesystem::path& file) {
  return pt2::is_archive(file);
}

}  // namespace zoo
