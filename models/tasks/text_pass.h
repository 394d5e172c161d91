#pragma once

/// @file
/// Use:
///
///     const zoo::TextPass pass = embedder.pass();
///     const std::vector<at::Tensor> vectors = zoo::run_at_once(pass, embedder.encode({"to be", "or not"}));

#include <functional>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/tasks/encoding_batch.h"

namespace zoo {

/// What a model computes for texts: a tensor for each, in their order.
struct TextPass {
  std::function<std::vector<at::Tensor>(std::span<const Encoding* const>)> compute;
  const Model* model = nullptr;
  std::int64_t kind = 0;  // of the passes of a model that compute the same, so that texts may share one
  std::size_t most_texts = 32;

  bool computes_as(const TextPass& other) const { return model == other.model && kind == other.kind; }
};

/// Runs a pass over all texts, in batches of at most pass.most_texts.
using RunPass = std::function<std::vector<at::Tensor>(const TextPass& pass, const std::vector<Encoding>&)>;

/// Batch by batch, the longest texts first, so that batches need little padding.
std::vector<at::Tensor> run_at_once(const TextPass& pass, const std::vector<Encoding>& texts);

}  // namespace zoo
