#pragma once

#include <filesystem>
#include <functional>

namespace zoo {

/// What LibTorch's writers of archives call with the next bytes.
using TorchFileWriter = std::function<std::size_t(const void*, std::size_t)>;

/// Writes a file atomically by `fill`, which hands the writer to LibTorch. Throws Error if it cannot be
/// written.
void write_torch_file(const std::filesystem::path& path,
                      const std::function<void(const TorchFileWriter&)>& fill);

}  // namespace zoo
