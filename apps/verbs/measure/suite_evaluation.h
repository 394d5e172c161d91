#pragma once

#include <string>
#include <vector>

#include "apps/command/flags.h"
#include "models/checkpoint/model_path.h"
#include "models/tasks/suite/suite.h"

namespace zoo {

struct SuiteFlags {
  std::vector<std::string> files;
  std::filesystem::path output;
  SuiteOptions options;
};

void declare_suite(Flags& flags, SuiteFlags& values);

/// Throws UsageError for a flag that has no meaning with --suite, or only with it.
void check_suite(const Flags& flags, const SuiteFlags& values);

/// Answers the tasks of the files; prints their scores and writes the answers to the output. Throws Error as
/// read_suite_task() and evaluate_task() do, before the model is loaded if it can.
void evaluate_suite(const SuiteFlags& flags, const ModelPath& model, const ComputeOptions& compute,
                    bool json);

}  // namespace zoo
