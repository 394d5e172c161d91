#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace zoo {

struct ChildResult {
  int exit_code = 0;  // 128 + the number of the signal that ended it
  std::string output, error_output;

  /// Why it failed, for an error message: error_output in one line, or the exit code if that is empty.
  std::string reason() const;
};

/// Runs a program from PATH without a shell, with empty standard input and its output at the end of `file`,
/// if given; waits for it. Nothing if there is no such program. Throws Error if it cannot be started.
std::optional<ChildResult> run_program(const std::vector<std::string>& arguments,
                                       const std::filesystem::path& file = {});

}  // namespace zoo
