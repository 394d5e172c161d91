#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zoo {

/// Starts copies of this program, as torchrun does: ranks that train together on this machine. Each gets the
/// variables of find_launch(), a share of the processors, and no standard input. Passes Ctrl-C, SIGTERM and
/// SIGHUP on to all. Only rank 0 prints; if another rank fails, all end with its message.
///
/// After a failure, all are started again up to `restarts` times, with kRestarts set.
///
/// Returns rank 0's exit status, or throws Error if a rank was killed and rank 0 could not say so.
/// `words` are the arguments of the copies, the program's name first.
int run_processes(const std::vector<std::string>& words, std::int64_t count, std::int64_t restarts = 0);

}  // namespace zoo
