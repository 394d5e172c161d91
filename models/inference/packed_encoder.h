#pragma once

#include "models/inference/packed_stack.h"
#include "models/model.h"

namespace zoo {

/// True for a BERT-like encoder or T5's, on the CPU, that the packed kernels support.
bool can_pack_encoder(const Model& model);

/// Makes the model's encoder run with packed weights and skip masked tokens; its embeddings and heads stay as
/// they are. The modules still run if hidden states, attentions or gradients are asked for, which
/// options.release rules out. Throws c10::Error unless can_pack_encoder(model).
void pack_encoder(Model& model, const inference::PackOptions& options);

}  // namespace zoo
