#pragma once

#include "models/inference/packed_stack.h"
#include "models/model.h"

namespace zoo {

/// True for a BERT-like encoder or T5's, on the CPU, that the packed kernels support.
bool can_pack_encoder(const Model& model);

/// The model with the embeddings and the head of `model` and packed encoder weights, which skip masked
/// tokens. It refuses gradients, hidden states and attentions. With options.release the weights of `model`
/// are gone; those that it lacks (options.stored) and that stay in modules are loaded. Throws c10::Error
/// unless can_pack_encoder(*model).
std::shared_ptr<Model> pack_encoder(std::shared_ptr<Model> model, const inference::PackOptions& options);

}  // namespace zoo
