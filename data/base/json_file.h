#pragma once

#include <filesystem>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

/// The JSON object in a file. Throws Error naming the file, and line and column of a syntax error.
nlohmann::json read_json(const std::filesystem::path& path);

/// Writes `value` indented by two, atomically, with a newline at the end.
void write_json(const std::filesystem::path& path, const nlohmann::json& value);

}  // namespace zoo
