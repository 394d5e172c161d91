#pragma once

#include <memory>

#include "apps/training/batches/batches.h"
#include "apps/training/retrieval_losses.h"
#include "apps/verbs/train/teacher.h"
#include "models/tasks/text_embedder.h"

namespace zoo {

struct EmbeddingOptions {
  EmbeddingLossOptions loss;
  BatchPlan plan;
  std::uint64_t seed = 0;
  /// GradCache (Gao et al., 2021): texts whose activations are kept at a time. Each piece is computed again
  /// in the backward pass, so that the gradients are the whole batch's. 0: all at once.
  std::int64_t mini_batch_size = 0;
  /// Its vectors or margins are learnt in place of `loss`, which decides the figures alone.
  std::optional<TextTeacher> teacher;
};

/// With the prompt of an anchor (or first sentence), and of a document.
struct Embedders {
  TextEmbedder queries, documents;
};

/// Texts, their vectors and the loss between them. The figures of an evaluation are those of its batches
/// together: of pairs and triplets accuracy, MRR@10 and nDCG@10 of the positive among all their documents (a
/// document of the same cosine ranks before it), of pairs with a score Spearman's correlation. Throws
/// UsageError naming a size of --matryoshka_dims above the vectors', Error for a teacher's vectors of another
/// size. `examples` must outlive the objective.
std::unique_ptr<Objective> embedding_objective(std::shared_ptr<Model> model, Embedders embedders,
                                               const Splits<SentenceExample>& examples,
                                               const EmbeddingOptions& options);

}  // namespace zoo
