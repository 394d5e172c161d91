#pragma once

#include <filesystem>

#include "models/graph/graph.h"

namespace zoo::pt2 {

/// Writes the archive of torch.export.save, atomically: program, weights, constants and sample inputs. Throws
/// Error naming what prevents this.
void write_archive(const graph::Graph& graph, const std::filesystem::path& path);

/// True for a file that write_archive() or torch.export.save wrote.
bool is_archive(const std::filesystem::path& path);

}  // namespace zoo::pt2
