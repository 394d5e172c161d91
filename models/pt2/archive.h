#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/graph/graph.h"

namespace zoo::pt2 {

/// A program of an archive. torch.export.load() returns the one called "model".
struct NamedGraph {
  std::string name;
  graph::Graph graph;
};

/// Writes the archive of torch.export.save, atomically: programs with their weights, constants and sample
/// inputs. What several programs share is written once. Throws Error naming what prevents this.
void write_archive(const std::vector<NamedGraph>& programs, const std::filesystem::path& path);

/// True for a file that write_archive() or torch.export.save wrote.
bool is_archive(const std::filesystem::path& path);

}  // namespace zoo::pt2
