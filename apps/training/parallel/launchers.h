#pragma once

/// @file
/// Use:
///
///     const zoo::Launch launch = zoo::find_launch({});
///     std::cout << "rank " << launch.rank << " of " << launch.size << ", started by " << launch.launcher;

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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

/// What tells a start of this process' launcher from others, the same after its restarts.
std::string launch_id();

/// False for all ranks but one, which prints what all know.
bool is_first_rank();

/// First host of Slurm's notation: "node[07-09,12],gpu3" is node07. Empty if there is none.
std::string first_host(const std::string& node_list);

/// Starts copies of this program, as torchrun does: ranks that train together on this machine. Each gets the
/// variables of find_launch(), a share of the processors, and no standard input. Passes Ctrl-C, SIGTERM and
/// SIGHUP on to all. Only rank 0 prints; if another rank fails, all end with its message.
///
/// After a failure, all are started again up to `restarts` times, with kRestarts set.
///
/// Returns rank 0's exit status, or throws Error if a rank was killed and rank 0 could not say so.
/// `words` are the arguments of the copies, the program's name first.
int run_processes(const std::vector<std::string>& words, std::int64_t count, std::int64_t restarts = 0);

/// This host's own address on the way to another host, by which that one can answer; empty if there is no
/// way. Sends nothing.
std::string address_towards(const std::string& host);

/// Waits until something accepts connections at host:port; false after `timeout`.
bool answers(const std::string& host, std::uint16_t port, std::chrono::milliseconds timeout);

std::string host_name();

}  // namespace zoo
