#include "models/checkpoint/named_tensors.h"

#include <ATen/ops/zeros_like.h>

#include "models/checkpoint/weight_layout.h"
#include "models/model.h"

namespace zoo {
namespace {

void add(NamedTensors& tensors, const char* name, const at::Tensor& tensor) {
  if (tensor.defined()) tensors.emplace_back(name, tensor);
}

void add_layers(NamedTensors& tensors, const std::string& name, const std::vector<at::Tensor>& layers) {
  for (std::size_t i = 0; i < layers.size(); ++i)
    tensors.emplace_back(name + "." + std::to_string(i), layers[i]);
}

}  // namespace

NamedTensors tensors_of(const ModelOutput& output, Head head) {
  NamedTensors tensors;
  add(tensors, head == Head::kPretraining ? "prediction_logits" : "logits", output.logits);
  add(tensors, "seq_relationship_logits", output.sentence_logits);
  add(tensors, "start_logits", output.start_logits);
  add(tensors, "end_logits", output.end_logits);
  if (head == Head::kBase) {
    add(tensors, "last_hidden_state", output.last_hidden_state);
    add(tensors, "pooler_output", output.pooler_output);
  }
  add(tensors, "loss", output.loss);
  const std::string decoder = output.encoder_last_hidden_state.defined() ? "decoder_" : "";
  add_layers(tensors, "encoder_hidden_states", output.encoder_hidden_states);
  add_layers(tensors, "encoder_attentions", output.encoder_attentions);
  add_layers(tensors, decoder + "hidden_states", output.hidden_states);
  add_layers(tensors, decoder + "attentions", output.attentions);
  add_layers(tensors, "cross_attentions", output.cross_attentions);
  return tensors;
}

NamedTensors gradients_of(const LoadedModel& loaded) {
  const WeightTable table = weight_table_of(*loaded.family, loaded.model->config(), loaded.head);
  const auto parameters = loaded.model->named_parameters();
  NamedTensors gradients;
  for (const WeightName& name : expand_layers(table.names, loaded.model->config().num_layers)) {
    const at::Tensor* parameter = parameters.find(name.ours);
    if (parameter == nullptr) continue;
    const at::Tensor gradient = parameter->grad().defined() ? parameter->grad() : at::zeros_like(*parameter);
    for (const auto& [theirs, tensor] : export_tensor(name, gradient, table))
      gradients.emplace_back("grad." + theirs, tensor);
  }
  return gradients;
}

std::map<std::string, std::vector<std::int64_t>> stacked_rows(const LoadedModel& loaded) {
  const WeightTable table = weight_table_of(*loaded.family, loaded.model->config(), loaded.head);
  const auto parameters = loaded.model->named_parameters();
  std::map<std::string, std::vector<std::int64_t>> rows;
  for (const WeightName& name : expand_layers(table.names, loaded.model->config().num_layers)) {
    const at::Tensor* parameter = parameters.find(name.ours);
    if (parameter != nullptr && name.theirs.size() > 1)
      rows[name.ours] = rows_of_names(name, parameter->size(0));
  }
  return rows;
}

}  // namespace zoo
