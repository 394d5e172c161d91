#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "apps/training/distillation_loss.h"
#include "apps/verbs/train/train_data.h"
#include "models/checkpoint/checkpoint.h"

namespace zoo {

/// Throws UsageError for flags of --teacher without one, and for those that do not go with it.
void require_teacher_flags(const TrainFlags& flags);

/// Fingerprint of a teacher's configuration and weights, and the size of their files in bytes.
struct TeacherFiles {
  std::string sha256;
  std::int64_t bytes = 0;
};
TeacherFiles teacher_files(const std::filesystem::path& teacher);

/// The language model of --teacher: as modules on the student's device, or as inference runs it on the CPU
/// from packed weights and GGUF files. Throws Error naming the directory unless its vocabulary and tokenizer
/// are the student's, and it reads as many tokens.
Teacher load_teacher(const TrainFlags& flags, const LoadedModel& student, const TaskData& data);

}  // namespace zoo
