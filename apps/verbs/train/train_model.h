#pragma once

#include <optional>

#include "apps/verbs/train/train_data.h"
#include "models/checkpoint/checkpoint.h"

namespace zoo {

/// The family of --model_type, or the task's default.
const Family& family_of(const TrainFlags& flags);

/// Tokenizer of a checkpoint, and the labels of its head if it fits this task. Empty without a checkpoint.
KnownModel known_model(const std::optional<CheckpointConfig>& checkpoint, Task task);

/// The model to train: from the checkpoint, with a new head if it has none for the task, or from scratch.
/// Throws Error naming what does not match the data.
LoadedModel make_model(const TrainFlags& flags, const std::optional<CheckpointConfig>& checkpoint,
                       const TaskData& data, c10::Device device);

}  // namespace zoo
