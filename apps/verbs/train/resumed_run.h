#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

/// Throws Error naming every flag whose value differs from the one that the run was started with, except
/// those of how long, how fast and where a run goes on. Both are objects of Flags::resolved().
void require_same_run(const std::filesystem::path& run, const nlohmann::json& started,
                      const nlohmann::json& now);

/// Throws Error if the checkpoint was trained on other data. `data_sha256` is TaskData::sha256. Checkpoints
/// of older versions do not tell.
void require_same_data(const std::filesystem::path& checkpoint, const std::string& data_sha256,
                       const std::string& dataset);

/// The micro batches of each rank with which an update has as many rows as before, although another number of
/// ranks goes on from the checkpoint. Throws Error if there is none.
std::int64_t equal_accumulation(const std::filesystem::path& checkpoint, std::int64_t accumulation,
                                std::int64_t ranks);

}  // namespace zoo
