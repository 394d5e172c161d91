#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "apps/command/arguments.h"
#include "models/kernels/packed/packed_weight.h"

namespace zoo {

/// What the system tells of the processor, and its clock in Hz while one thread computes: the best of a few
/// measurements of multiplications that wait for one another, three clocks each.
struct Processor {
  std::string name;    // "AMD EPYC 9R14 (virtual machine)"
  std::string caches;  // "L1 32 KB, L2 1 MB, L3 32 MB"
  double clock = 0;
};
Processor this_processor();

/// Bytes per second at which all threads read `bytes` of memory, each its part, again and again, from a cache
/// where they fit, as in the work that this limits: the best pass of a quarter of a second.
double read_rate(std::size_t bytes);

/// The same for 512 MB, which no cache holds.
inline double memory_bandwidth() { return read_rate(std::size_t{512} << 20); }

/// Operations (a multiplication and an addition are two) per second of all threads that limit products with
/// weights of this type. kFloat32: those of the multiply-add units with numbers in registers, which no work
/// exceeds. Others: those of the fastest products known here, our packed ones of 512 rows or LibTorch's.
double product_rate(kernels::WeightType type);

/// tzoo bench train: prints the time of an update and of its parts as JSON.
int run_bench_train(const Arguments& arguments);

/// The JSON of bench train. Nothing if the arguments ask for help, and for ranks other than the first.
std::optional<nlohmann::ordered_json> measure_training(const Arguments& arguments);

/// tzoo bench compare: what this machine's memory and products allow, and what three kinds of work reach.
int run_bench_compare(const Arguments& arguments);

}  // namespace zoo
