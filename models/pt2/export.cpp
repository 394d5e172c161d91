#include "models/pt2/export.h"

#include <ATen/ops/ones_like.h>

#include "models/graph/passes.h"
#include "models/pt2/archive.h"

namespace zoo {

graph::Graph export_pt2(Model& model, const std::filesystem::path& file) {
  graph::Graph graph = graph::forward_pass(model, /*token_types=*/false);
  pt2::write_archive(graph, file);
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
