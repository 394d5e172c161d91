#pragma once

#include <string>
#include <vector>

#include "apps/command/flags.h"
#include "data/base/model_path.h"
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

/// Rows of ids [B, T], as a DecodingSession reads them.
std::vector<TokenIds> rows_of(const at::Tensor& ids);

}  // namespace zoo
