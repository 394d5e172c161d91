#pragma once

#include <filesystem>
#include <optional>

#include "apps/verbs/train/train_data.h"
#include "models/checkpoint/checkpoint.h"

namespace zoo {

/// The family that the flags name, or the task's default.
const Family& family_of(const TrainFlags& flags);

/// What a checkpoint brings: its tokenizer, and the labels of a head for this task. Nothing of an empty path.
KnownModel known_model(const std::optional<std::filesystem::path>& checkpoint, Task task);

/// The model to train: of the checkpoint, with a fresh head where it has none for the task, or from scratch.
/// Throws Error naming what does not fit the data.
LoadedModel make_model(const TrainFlags& flags, const std::optional<std::filesystem::path>& checkpoint,
                       const TaskData& data, c10::Device device);

}  // namespace zoo
