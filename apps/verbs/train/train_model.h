#pragma once

#include <filesystem>
#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "apps/verbs/train/train_data.h"
#include "models/checkpoint/checkpoint.h"

namespace zoo {

/// The family of --model_type, or the task's default.
const Family& family_of(const TrainFlags& flags);

/// Tokenizer of a checkpoint, and the labels of its head if it fits this task. Empty without a checkpoint.
KnownModel known_model(const std::optional<CheckpointConfig>& checkpoint, Task task);

/// What a checkpoint decides, as values of the flags for the model and the tokenizer.
nlohmann::json flags_of(const CheckpointConfig& checkpoint, const KnownModel& known);

/// Throws Error naming the flags of `given` whose values are not those of flags_of(). A tokenizer may also be
/// named by the checkpoint's directory.
void require_equal(const nlohmann::json& given, const nlohmann::json& own,
                   const std::filesystem::path& checkpoint);

/// The model to train: from the checkpoint, with a new head if it has none for the task, or from scratch.
/// Throws Error naming what does not match the data.
LoadedModel make_model(const TrainFlags& flags, const std::optional<CheckpointConfig>& checkpoint,
                       const TaskData& data, c10::Device device);

}  // namespace zoo
