#pragma once

#include <optional>
#include <string>
#include <vector>

namespace zoo {

struct ChildResult {
  int exit_code = 0;  // 128 + the signal's number if one ended the program
  std::string output, error_output;

  /// Why it failed, for an error message: error_output in one line, or the exit code if the program said
  /// nothing.
  std::string reason() const;
};

/// Runs a program found on PATH, without a shell and with an empty standard input, until it ends.
/// Returns nothing if there is no such program. Throws Error if it cannot be started for another reason.
std::optional<ChildResult> run_program(const std::vector<std::string>& arguments);

}  // namespace zoo
