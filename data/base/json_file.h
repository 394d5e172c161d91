#pragma once

/// @file
/// Use:
///
///     nlohmann::json config = zoo::read_json("config.json");
///     config["num_labels"] = 3;
///     zoo::write_json("config.json", config);

#include <filesystem>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "data/base/atomic_file.h"

namespace zoo {

/// Reads a JSON object from a model's file of at most `most` bytes. Throws Error naming the file, and the
/// line and column of a syntax error.
nlohmann::json read_json(const std::filesystem::path& path, std::size_t most = kMostSettings);

/// The same from the text of the file `path`.
nlohmann::json read_json(const std::filesystem::path& path, const std::string& text);

/// Reads a JSON array from a file. Throws as read_json does.
nlohmann::json read_json_array(const std::filesystem::path& path);

/// Writes `value` atomically, indented by two and with a final newline.
void write_json(const std::filesystem::path& path, const nlohmann::json& value);

}  // namespace zoo
