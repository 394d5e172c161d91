#pragma once

/// @file
/// Use:
///
///     const zoo::Launch launch = zoo::find_launch({});
///     std::cout << "rank " << launch.rank << " of " << launch.size << ", started by " << launch.launcher;

#include <cstdint>
#include <optional>
#include <string>

namespace zoo {

/// Where the ranks meet. Fields that are not given come from the launcher.
struct MeetingPlace {
  std::string master_addr;  // host of rank 0
  std::optional<std::int64_t> master_port;
};

/// What the variables of a launcher say about this process.
struct Launch {
  std::string launcher;  // such as "torchrun"; empty: none
  std::int64_t rank = 0, size = 1, local_rank = 0;
  std::string address;        // of rank 0; empty for a process alone
  std::uint16_t port = 0;     // of the store
  bool serves_store = false;  // the launcher serves the store, else rank 0 does
  std::string attempt;        // number of restarts by the launcher
};

/// Reads the variables of torchrun (and Kubernetes, which has the same), Open MPI, MPICH, Intel MPI, Slurm,
/// and of run_processes(). Throws Error if they are incomplete or disagree on the number of processes: a
/// process must not train separately if it was started as one of several.
Launch find_launch(const MeetingPlace& place);

/// The variable that run_processes() sets in addition to torchrun's: the number of processes.
inline constexpr const char* kOwnLauncher = "TZOO_PROCESSES";

/// torchrun's variable that counts how often it has started a failed training again; run_processes(), too.
inline constexpr const char* kRestarts = "TORCHELASTIC_RESTART_COUNT";

/// False for all ranks but one, which prints what all know.
bool is_first_rank();

/// First host of Slurm's notation: "node[07-09,12],gpu3" is node07. Empty if there is none.
std::string first_host(const std::string& node_list);

}  // namespace zoo
