#include "models/onnx/export.h"

#include "models/graph/passes.h"
#include "models/onnx/file_builder.h"

namespace zoo {
namespace {

using onnx::Names;

// "present.0.decoder.key", … in the order of the passes.
void add_caches(Names& names, std::int64_t layers, const std::string& owner = "") {
  for (std::int64_t i = 0; i < layers; ++i) {
    for (const char* part : {"key", "value"})
      names.push_back("present." + std::to_string(i) + "." + owner + part);
  }
}

// Optimum gives the caches of each layer together: its own, then those of the memory.
void order_by_layer(std::vector<onnx::Port>& inputs, std::int64_t layers) {
  const auto first = static_cast<std::int64_t>(inputs.size()) - 4 * layers;
  std::vector<onnx::Port> ordered(inputs.begin(), inputs.begin() + first);
  for (std::int64_t i = 0; i < layers; ++i) {
    for (const std::int64_t at : {2 * i, 2 * i + 1, 2 * (layers + i), 2 * (layers + i) + 1})
      ordered.push_back(inputs[static_cast<std::size_t>(first + at)]);
  }
  inputs = std::move(ordered);
}

Names forward_outputs(const Model& model) {
  const ModelParts parts = model.parts();
  if (parts.head.is_span) return {"start_logits", "end_logits"};
  if (parts.sentence_head.weight.defined()) return {"prediction_logits", "seq_relationship_logits"};
  return {parts.head.weight.defined() ? "logits" : "last_hidden_state"};
}

// The graph as a file whose outputs have these names; names of inputs and of free sizes are the graph's.
onnx::File translate(const graph::Graph& graph, const std::string& file, const Names& outputs) {
  onnx::File result{.name = file};
  onnx::FileBuilder builder(graph, result);
  for (const graph::Node& node : graph.nodes) {
    const Names names = onnx::translated(builder, node);
    std::size_t next = 0;
    for (const auto& ids : node.results) {
      for (const graph::ValueId id : ids) builder.set_name(id, names.at(next++));
    }
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) builder.add_output(outputs[i], graph.outputs.at(i));
  return result;
}

}  // namespace

void export_onnx(Model& model, const std::filesystem::path& directory) {
  const TransformerConfig& config = model.config();
  std::vector<onnx::File> files;
  if (!model.parts().generates()) {
    files.push_back(
        translate(graph::forward_pass(model, /*token_types=*/true), "model.onnx", forward_outputs(model)));
  } else if (config.shape == Shape::kDecoder) {
    Names outputs{"logits"};
    add_caches(outputs, config.num_layers);
    files.push_back(
        translate(graph::decoding_passes(model, /*all_logits=*/true).step, "model.onnx", outputs));
  } else {
    graph::DecodingPasses passes = graph::decoding_passes(model);
    passes.start->inputs[0].name = passes.step.inputs[0].name = "input_ids";  // as Optimum calls them
    files.push_back(translate(*passes.encode, "encoder_model.onnx", {"last_hidden_state"}));
    Names outputs{"logits"};
    add_caches(outputs, config.decoder_layers(), "decoder.");
    const Names step = outputs;
    add_caches(outputs, config.decoder_layers(), "encoder.");
    files.push_back(translate(*passes.start, "decoder_model.onnx", outputs));
    files.push_back(translate(passes.step, "decoder_with_past_model.onnx", step));
    order_by_layer(files.back().inputs, config.decoder_layers());
  }
  onnx::write(files, directory);
}

}  // namespace zoo
