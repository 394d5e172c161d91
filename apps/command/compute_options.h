#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace zoo {

/// The flags of every verb that computes (Flags::add_compute), checked for form only.
struct ComputeOptions {
  std::string device = "auto";          // auto, cpu, cuda, cuda:N
  std::string dtype = "float32";        // float32, bfloat16, float16
  std::optional<std::int64_t> threads;  // at least 1; none: one for each core
  std::int64_t seed = 1337;             // at least 0
};

}  // namespace zoo
