#pragma once

/// @file
/// Use:
///
///     const zoo::GgufOutput tensor{"a", &zoo::gguf_type("F32"), {1}, [] { return std::string(4, '\0'); }};
///     zoo::write_gguf("a.gguf", {{"general.architecture", std::string("mine")}}, {tensor});

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "data/base/gguf_file.h"

namespace zoo {

using GgufValue = std::variant<std::uint32_t, float, bool, std::string, std::vector<std::string>,
                               std::vector<float>, std::vector<std::int32_t>, std::vector<std::uint8_t>>;
using GgufMetadata = std::vector<std::pair<std::string, GgufValue>>;

/// A tensor to write; `bytes` makes its blocks on demand.
struct GgufOutput {
  std::string name;
  const GgufType* type;
  std::vector<std::int64_t> shape;  // rows first
  std::function<std::string()> bytes;
};

/// Writes a GGUF file of version 3, atomically; `check` may inspect the complete file before it gets its
/// name, and throw. Throws Error for a full disk.
void write_gguf(const std::filesystem::path& path, const GgufMetadata& metadata,
                const std::vector<GgufOutput>& tensors,
                const std::function<void(const std::filesystem::path&)>& check = {});

}  // namespace zoo
