#pragma once

#include <ATen/core/Generator.h>

#include "models/layers/linear.h"

namespace zoo {

/// weight from normal(0, std), bias zero.
void draw_normal(LinearImpl& linear, double std, at::Generator generator);

/// weight from normal(0, std), the padding's row zero.
void draw_normal(EmbeddingImpl& embedding, double std, at::Generator generator);

/// BERT's rule (Devlin et al., 2019) for everything in `module`, in the order of its submodules: projections
/// and embeddings as above, norms one and zero.
void draw_all_normal(torch::nn::Module& module, double std, const at::Generator& generator);

}  // namespace zoo
