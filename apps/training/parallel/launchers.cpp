#include "apps/training/parallel/launchers.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <sstream>
#include <thread>

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "data/base/descriptor.h"
#include "data/base/environment.h"
#include "data/base/field_error.h"
#include "data/base/lines.h"

namespace zoo {
namespace {

struct Variables {
  const char *launcher, *rank, *size, *local_rank, *local_size;
};

// In the order of their weight: srun may start torchrun, and Slurm's mpirun sets both kinds.
constexpr Variables kLaunchers[]{
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MVAPICH's mpirun", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE"},
    {"flux run", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID", ""},
    {"mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_TASKS_PER_NODE"}};

constexpr std::int64_t kPort = 29500;  // torchrun's default, too

// A variable's number of at least `smallest`; -1 if it is unset.
std::int64_t value_of(const char* variable, std::int64_t smallest) {
  const std::string text = environment(variable);
  if (text.empty()) return -1;
  const auto value = number_in<std::int64_t>(text);
  if (value.value_or(smallest - 1) < smallest)
    throw Error(variable, " '", text, "': expected an integer of at least ", smallest);
  return *value;
}

std::int64_t size_of(const Variables& v) {
  const std::int64_t rank = value_of(v.rank, 0), size = value_of(v.size, 1);
  if (rank < 0 && size > 1)
    throw Error(v.size, " is ", size, ", but ", v.rank, " is missing: ", v.launcher,
                " sets both for each process; unset ", v.size, " to train in one process");
  if (rank > 0 && size < 0) throw Error(v.rank, " is ", rank, ", but ", v.size, " is missing");
  if (size > 0 && rank >= size) throw Error(v.rank, " is ", rank, ", which is not below ", v.size, " ", size);
  return std::max<std::int64_t>(size, 1);
}

std::string name_of(const Variables& v) {
  if (&v != kLaunchers) return v.launcher;
  if (!environment(kOwnLauncher).empty()) return "tzoo train --processes";
  return environment("TORCHELASTIC_RUN_ID").empty() ? "the variables RANK and WORLD_SIZE" : v.launcher;
}

std::string address_of(const MeetingPlace& place, const Variables& v, std::int64_t size) {
  if (!place.master_addr.empty()) return place.master_addr;
  if (std::string given = environment("MASTER_ADDR"); !given.empty()) return given;
  for (const char* list : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"})
    if (std::string host = first_host(environment(list)); !host.empty()) return host;
  if (environment(v.local_size) == std::to_string(size)) return "127.0.0.1";  // all on this host
  throw FieldError(Field{"master_addr"}, " is missing: ", name_of(v), " has started ", size,
                   " processes and does not say where rank 0 is; the variable MASTER_ADDR can, too");
}

std::uint16_t port_of(const MeetingPlace& place) {
  // Two jobs of Slurm may share a host.
  const std::int64_t job = value_of("SLURM_JOB_ID", 0), given = value_of("MASTER_PORT", 1);
  const std::int64_t port = place.master_port ? *place.master_port
                            : given > 0       ? given
                            : job >= 0        ? 20000 + job % 10000
                                              : kPort;
  if (port < 1 || port > 65535) throw FieldError(Field{"master_port"}, " ", port, " is not in 1 to 65535");
  return static_cast<std::uint16_t>(port);
}

std::string own_address(int connected) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  std::array<char, NI_MAXHOST> text{};
  auto* own = reinterpret_cast<sockaddr*>(&address);
  if (::getsockname(connected, own, &size) != 0) return "";
  return ::getnameinfo(own, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0 ? text.data()
                                                                                             : "";
}

// This host's address of a connection that was made; empty if none was.
std::string connect_once(const std::string& host, std::uint16_t port, int type, int milliseconds) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = type;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return "";
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, ::freeaddrinfo);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    const Descriptor socket(::socket(at->ai_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (socket < 0) continue;
    if (::connect(socket, at->ai_addr, at->ai_addrlen) != 0) {
      if (errno != EINPROGRESS) continue;
      pollfd waits{.fd = socket, .events = POLLOUT, .revents = 0};
      int fault = 0;
      socklen_t size = sizeof fault;
      if (::poll(&waits, 1, milliseconds) <= 0 ||
          ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &fault, &size) != 0 || fault != 0)
        continue;
    }
    if (std::string address = own_address(socket); !address.empty()) return address;
  }
  return "";
}

}  // namespace

Launch find_launch(const MeetingPlace& place) {
  Launch launch;
  const Variables* chosen = nullptr;
  for (const Variables& v : kLaunchers) {
    const std::int64_t size = size_of(v);
    if (launch.launcher.empty() && !environment(v.rank).empty()) launch.launcher = name_of(v);
    if (size == 1) continue;
    if (chosen == nullptr) {
      chosen = &v;
      launch.launcher = name_of(v);
      launch.size = size;
    } else if (size > launch.size) {
      throw Error(launch.launcher, " has started ", launch.size, " processes (", chosen->size, "), but ",
                  v.size, " says ", size, ": they would be separate trainings; unset ", v.size,
                  " if no others were started");
    }
  }
  // Of fewer processes than were started each would train alone.
  for (const char* variable : {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE",
                               "MPI_LOCALNRANKS", "PALS_LOCAL_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (const std::int64_t size = value_of(variable, 1); size > launch.size)
      throw Error(variable, " is ", size, ", but other variables say that ", launch.size,
                  launch.size == 1 ? " process trains" : " processes train", "; unset ", variable,
                  " if no others were started");
  if (const std::int64_t rank = value_of("PALS_RANKID", 0); rank >= launch.size)
    throw Error("PALS_RANKID is ", rank, ", but PMI_RANK and PMI_SIZE, by which the ranks meet, are missing");
  if (chosen == nullptr) return launch;
  launch.rank = value_of(chosen->rank, 0);
  launch.local_rank = std::max<std::int64_t>(value_of(chosen->local_rank, 0), 0);
  launch.address = address_of(place, *chosen, launch.size);
  launch.port = port_of(place);
  launch.serves_store = chosen == kLaunchers && environment("TORCHELASTIC_USE_AGENT_STORE") == "True";
  launch.attempt = environment(kRestarts);
  return launch;
}

std::string launch_id() {
  // "none" is torchrun's where it meets no other machine: then the launcher is the process above.
  if (const std::string id = environment("TORCHELASTIC_RUN_ID"); !id.empty() && id != "none") return id;
  const std::string above = std::to_string(::getppid());
  std::string status;
  std::getline(std::ifstream("/proc/" + above + "/stat"), status);
  std::istringstream fields(status.substr(status.rfind(')') + 1));
  constexpr int kStartTime = 20;  // of the fields after the name
  for (int i = 0; i < kStartTime; ++i) fields >> status;
  return above + " " + status;
}

bool is_first_rank() {
  for (const Variables& v : kLaunchers)
    if (const std::string rank = environment(v.rank); !rank.empty()) return rank == "0";
  return true;
}

std::string first_host(const std::string& node_list) {
  std::string host;
  for (std::size_t i = 0; i < node_list.size() && node_list[i] != ','; ++i) {
    if (node_list[i] != '[') {
      host += node_list[i];
      continue;
    }
    const std::size_t end = std::min(node_list.find(']', i), node_list.size());
    host += node_list.substr(i + 1, std::min(node_list.find_first_of("-,]", i), end) - i - 1);
    i = end;
  }
  return host;
}

std::string address_towards(const std::string& host) {
  constexpr std::uint16_t kAny = 9;  // a datagram's port; none is sent
  return connect_once(host, kAny, SOCK_DGRAM, 0);
}

bool answers(const std::string& host, std::uint16_t port, std::chrono::milliseconds timeout) {
  using std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPause(100);
  constexpr int kOneTry = 2000;
  const auto end = steady_clock::now() + timeout;
  do {
    if (!connect_once(host, port, SOCK_STREAM, kOneTry).empty()) return true;
    std::this_thread::sleep_for(kPause);
  } while (steady_clock::now() < end);
  return false;
}

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace zoo
