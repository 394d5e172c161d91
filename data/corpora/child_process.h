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

/// Runs a program from PATH without a shell and with empty standard input, and waits for it. Its output goes
/// to the end of the file `file`, if there is one. Returns nothing if there is no such program. Throws Error
/// if it cannot be started for another reason.
std::optional<ChildResult> run_program(const std::vector<std::string>& arguments,
                                       const std::filesystem::path& file = {});

}  // namespace zoo
