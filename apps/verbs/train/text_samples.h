#pragma once

#include <functional>
#include <memory>
#include <string>

#include "apps/verbs/train/train_options.h"
#include "models/model.h"
#include "tokenizer/tokenizer.h"

namespace zoo {

/// Texts that a model generates while it learns.
struct TextSamples {
  std::int64_t interval = 0;  // iterations between two texts; 0: none
  std::function<std::string()> text;
};

/// The texts of --sample_interval and --sample_prompt; both must outlive them. They draw from generators of
/// their own: a run with samples learns what it learns without. Throws UsageError for a task without a text
/// to continue.
TextSamples text_samples(const TrainFlags& flags, Model& model, std::shared_ptr<const Tokenizer> tokenizer);

}  // namespace zoo
