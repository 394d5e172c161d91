#pragma once

/// @file
/// Use:
///
///     const zoo::ModelOutput output = loaded.model->forward(inputs);
///     zoo::write_safetensors("outputs.safetensors", zoo::tensors_of(output, loaded.head));
///     output.loss.backward();
///     zoo::write_safetensors("gradients.safetensors", zoo::gradients_of(loaded));

#include <map>
#include <string>
#include <vector>

#include "models/checkpoint/checkpoint.h"
#include "models/formats/safetensors.h"

namespace zoo {

/// All outputs of a forward pass with this head, under Hugging Face's names: logits, loss, hidden_states.N,
/// …; last_hidden_state of a bare model.
NamedTensors tensors_of(const ModelOutput& output, Head head);

/// grad.NAME for each of Hugging Face's parameters, after backward(); zeros if the loss does not depend on
/// it.
NamedTensors gradients_of(const LoadedModel& loaded);

/// Rows of the weights that one of our parameters stacks, by its name: of queries, keys and values, of a gate
/// and what it gates, of experts. Parameters that are one weight of Hugging Face's are left out.
std::map<std::string, std::vector<std::int64_t>> stacked_rows(const LoadedModel& loaded);

}  // namespace zoo
