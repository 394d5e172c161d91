#pragma once

#include <functional>

#include "apps/training/distillation_loss.h"
#include "apps/verbs/train/train_data.h"
#include "models/checkpoint/checkpoint.h"

namespace zoo {

/// The language model of --teacher: as modules on the student's device, or as inference runs it on the CPU
/// from packed weights and GGUF files. Throws Error naming the directory unless its vocabulary and tokenizer
/// are the student's, and it reads as many tokens.
Teacher load_teacher(const TrainFlags& flags, const LoadedModel& student, const TaskData& data);

/// The teacher of an embedding model, which reads texts as the verbs embed and rank do.
struct TextTeacher {
  using Texts = std::vector<std::string>;
  bool scores_pairs = false;  // a cross-encoder
  /// Vectors [Q + M, D] of queries and documents; of a cross-encoder the logits [M] of as many pairs.
  std::function<at::Tensor(const Texts& queries, const Texts& documents)> answers;
};
/// Throws Error for a model that is neither.
TextTeacher load_text_teacher(const TrainFlags& flags);

}  // namespace zoo
