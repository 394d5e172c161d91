#pragma once

/// @file
/// Use:
///
///     const zoo::ComputeOptions compute{.device = "cpu", .weights = "int8"};

#include <cstdint>
#include <optional>
#include <string>

namespace zoo {

/// Where and in which number formats a model computes, by the words of the flags. The functions that take
/// them throw UnfitField for another word, FieldError for another number.
struct ComputeOptions {
  std::string device = "auto";    // auto, cpu, cuda, cuda:N
  std::string dtype = "float32";  // float32, bfloat16, float16
  /// Of the weights: float32, bfloat16, int8, int4; "auto": as the directory holds packed weights, "gguf" for
  /// a GGUF file with quantized ones, else `dtype`. "modules": LibTorch's operators, which also compute where
  /// our kernels do not support the model.
  std::string weights = "auto";
  /// Of the KV cache: float32, bfloat16, int8; "auto": float32 with float32 weights, else bfloat16. Modules
  /// take "auto" alone.
  std::string cache = "auto";
  /// At least 1; none: one per core. The program applies it: tzoo does, others call at::set_num_threads().
  std::optional<std::int64_t> threads;
  std::int64_t seed = 1337;  // at least 0
};

}  // namespace zoo
