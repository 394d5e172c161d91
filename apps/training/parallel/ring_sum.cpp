#include "apps/training/parallel/ring_sum.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include <mpi.h>

namespace zoo {
namespace {

// Numbers per message. Open MPI's TCP sends a complete message before it receives the next: half of the
// line's speed, unless messages are short.
constexpr std::size_t kPiece = std::size_t{1} << 15;

struct Part {
  float* begin;
  std::size_t count;
};

// Part `index`, modulo `count` of them.
Part part_of(float* values, std::size_t size, int index, int count) {
  const auto i = static_cast<std::size_t>((index + count) % count), parts = static_cast<std::size_t>(count);
  const std::size_t first = size * i / parts;
  return {values + first, size * (i + 1) / parts - first};
}

// MPI_Waitall() would spin on a processor that the backward pass needs.
void wait_for_all(std::vector<MPI_Request>& requests) {
  constexpr int kPolls = 100;
  std::vector<int> indices(requests.size());
  for (int idle = 0, finished = 0; finished != MPI_UNDEFINED; idle = finished > 0 ? 0 : idle + 1) {
    if (idle > kPolls) std::this_thread::sleep_for(std::chrono::microseconds(50));
    MPI_Testsome(static_cast<int>(requests.size()), requests.data(), &finished, indices.data(),
                 MPI_STATUSES_IGNORE);
  }
}

void exchange(const Part& sent, int to, const Part& received, int from) {
  std::vector<MPI_Request> requests;
  for (std::size_t at = 0; at < std::max(sent.count, received.count); at += kPiece) {
    const auto piece_of = [&](const Part& part) {
      return static_cast<int>(std::min(kPiece, part.count - at));
    };
    if (at < received.count)
      MPI_Irecv(received.begin + at, piece_of(received), MPI_FLOAT, from, 0, MPI_COMM_WORLD,
                &requests.emplace_back());
    if (at < sent.count)
      MPI_Isend(sent.begin + at, piece_of(sent), MPI_FLOAT, to, 0, MPI_COMM_WORLD, &requests.emplace_back());
  }
  wait_for_all(requests);
}

}  // namespace

void ring_sum(float* values, std::size_t count) {
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  std::vector<float> others(count / static_cast<std::size_t>(size) + 1);
  // Each part goes around the ring once to be added up, then once more as a sum.
  for (int step = 0; step < size - 1; ++step) {
    const Part own = part_of(values, count, rank - step - 1, size);
    exchange(part_of(values, count, rank - step, size), next, {others.data(), own.count}, previous);
    for (std::size_t i = 0; i < own.count; ++i) own.begin[i] += others[i];
  }
  for (int step = 0; step < size - 1; ++step)
    exchange(part_of(values, count, rank - step + 1, size), next, part_of(values, count, rank - step, size),
             previous);
}

}  // namespace zoo
