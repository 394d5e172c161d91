#pragma once

#include <memory>
#include <optional>

#include "apps/training/lora.h"
#include "apps/training/trainer.h"
#include "apps/verbs/train/train_data.h"
#include "models/checkpoint/checkpoint.h"

namespace zoo {

/// Functions that save a model: `whole` with its adapters merged; `step` for resuming, if that differs.
struct Savers {
  Trainer::SaveModel whole, step;
};

/// Of a model from a checkpoint also what its directory has beside the weights; of `data` the tokenizer and
/// the chat template, and what `more`, if it is not null, writes into the directory. `adapters` may be null.
Savers savers(const LoadedModel& loaded, const std::optional<CheckpointConfig>& checkpoint,
              const TaskData& data, std::shared_ptr<LoraAdapters> adapters,
              const Trainer::SaveModel& more = nullptr);

/// Freezes what --freeze names and, with --lora_rank, everything except adapters and a new head. Returns the
/// adapters, loaded from the checkpoint of a resumed run; null without --lora_rank.
std::shared_ptr<LoraAdapters> adapt(const TrainFlags& flags,
                                    const std::optional<CheckpointConfig>& checkpoint,
                                    const LoadedModel& loaded);

}  // namespace zoo
