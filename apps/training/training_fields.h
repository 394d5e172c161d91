#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "apps/training/trainer.h"
#include "data/base/field_error.h"

namespace zoo {

/// What may become of an option when a run is resumed. The rest decides the model, the order of its data or
/// the optimizer's state, which the checkpoint holds.
enum class Resumed { kKept, kMayChange };

/// An option of TrainerOptions, stated once: the flags of the command line with their help, the keys of
/// run_config.json, the changes that a resumed run may have and the Trainer's checks are read from it.
struct TrainingField {
  std::string_view name;
  std::variant<bool*, std::int64_t*, double*, std::optional<std::int64_t>*, std::optional<double>*,
               OptimizerKind*, MuonScale*, ScheduleKind*>
      member;
  FieldRange range;  // of numbers
  std::string_view help;
  Resumed resumed = Resumed::kKept;
  std::vector<std::string> choices = {};  // of an enum, in its order
};

/// All options that a user may choose, in the order of the help.
std::vector<TrainingField> training_fields(TrainerOptions& options);

/// Throws FieldError naming the first number that is out of its range.
void require_ranges(TrainerOptions options);

}  // namespace zoo
