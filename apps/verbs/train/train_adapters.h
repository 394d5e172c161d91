#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "apps/training/lora.h"
#include "apps/training/trainer.h"
#include "apps/verbs/train/train_options.h"
#include "models/checkpoint/checkpoint.h"
#include "tokenizer/tokenizer.h"

namespace zoo {

/// What writes a model: whole, with its adapters merged; or as a step checkpoint goes on from it, where that
/// is something else.
struct Savers {
  Trainer::SaveModel whole, step;
};

/// `tokenizer` and `adapters` may be null.
Savers savers(const LoadedModel& loaded, std::shared_ptr<const Tokenizer> tokenizer,
              std::shared_ptr<LoraAdapters> adapters);

/// Freezes what --freeze names, and with --lora_rank all but adapters and a fresh head. Returns the adapters,
/// as they were at the checkpoint of a run that goes on; null without.
std::shared_ptr<LoraAdapters> adapt(const TrainFlags& flags,
                                    const std::optional<std::filesystem::path>& checkpoint,
                                    const LoadedModel& loaded);

}  // namespace zoo
