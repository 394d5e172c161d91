#pragma once

#include <filesystem>
#include <string>

namespace zoo {

/// The losses of a training run so far, as JSON: {"name", "rows": [[iteration, training loss, validation loss
/// or null, tokens a second], …]}. Of many rows without a validation loss some are left out. Throws Error
/// naming a metrics.jsonl that cannot be read.
std::string watched_run(const std::filesystem::path& run);

}  // namespace zoo
