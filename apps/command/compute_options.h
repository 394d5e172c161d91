#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace zoo {

/// Flags of every verb that computes (Flags::add_compute); only their syntax is checked.
struct ComputeOptions {
  std::string device = "auto";          // auto, cpu, cuda, cuda:N
  std::string dtype = "float32";        // float32, bfloat16, float16
  std::optional<std::int64_t> threads;  // at least 1; none: one per core
  std::int64_t seed = 1337;             // at least 0
};

}  // namespace zoo
