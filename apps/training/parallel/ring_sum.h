#pragma once

#include <cstddef>

namespace zoo {

/// Replaces `values` by their sums over all ranks of MPI_COMM_WORLD, the same bits on each (ring all-reduce:
/// Patarasuk and Yuan, 2009): a rank sends and receives 2 (N - 1) / N of them, at the same time, and waits
/// without occupying its processor. All ranks call it with the same `count`.
void ring_sum(float* values, std::size_t count);

}  // namespace zoo
