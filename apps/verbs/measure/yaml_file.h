#pragma once

#include <filesystem>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

/// The content of a JSON or YAML file, with the values that PyYAML gives. Throws Error naming file and line
/// for a tag such as !function and for what PyYAML might take for a number, time or mapping of others, and
/// naming the package if this tzoo was built without yaml-cpp.
nlohmann::ordered_json read_yaml(const std::filesystem::path& path);

}  // namespace zoo
