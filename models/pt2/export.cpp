#include "models/pt2/export.h"

#include <ATen/ops/ones_like.h>

#include "models/graph/passes.h"
#include "models/pt2/archive.h"

namespace zoo {

graph::Graph export_pt2(Model& model, const std::filesystem::path& file, bool decoding) {
  std::vector<pt2::NamedGraph> programs{{"model", graph::forward_pass(model, /*token_types=*/false)}};
  if (decoding) {
    graph::DecodingPasses passes = graph::decoding_passes(model);
    if (passes.encode) programs.push_back({"encode", std::move(*passes.encode)});
    if (passes.start) programs.push_back({"start", std::move(*passes.start)});
    programs.push_back({"step", std::move(passes.step)});
  }
  pt2::write_archive(programs, file);
  return std::move(programs[0].graph);
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

bool is_pt2(const std::filesystem::path& file) { return pt2::is_archive(file); }

}  // namespace zoo
