#pragma once

#include "models/checkpoint/checkpoint.h"
#include "models/formats/safetensors.h"

namespace zoo {

/// All that a forward pass of a model with this head gave, under the names of Hugging Face's outputs: logits,
/// loss, hidden_states.N, …; last_hidden_state of a bare model.
NamedTensors tensors_of(const ModelOutput& output, Head head);

/// grad.NAME for each of Hugging Face's parameters, after backward(); zeros where the loss does not reach
/// one.
NamedTensors gradients_of(const LoadedModel& loaded);

}  // namespace zoo
