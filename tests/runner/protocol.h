// How a client asks a fork server for a run, over a local socket:
//
//   client -> server   Request, then its text; the open ones of the client's standard streams travel beside
//   it server -> client   std::int32_t: the process that runs, or 0 where the client has to run the program
//   itself server -> client   Ended, when that process has ended
//
// fork_server.cpp and fork_server.py answer, forked.cpp asks.
#pragma once

#include <cstdint>

struct Request {
  std::uint32_t arguments,
      variables;          // how many texts of each kind follow, each ended by a zero, and the folder
  std::uint32_t bytes;    // of all these texts
  std::uint32_t streams;  // bit N: standard stream N is open
};

struct Ended {
  std::int32_t status;  // as waitpid() gives it
  std::int32_t padding = 0;
  std::int64_t microseconds;  // of processor time
};
