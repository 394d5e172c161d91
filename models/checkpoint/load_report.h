#pragma once

/// @file
/// Use:
///
///     const zoo::LoadReport report = zoo::inspect_weights(zoo::read_checkpoint_config("runs/kjv/final"));
///     if (!report.good()) std::cerr << report.faults() << "\n";

#include <string>
#include <vector>

namespace zoo {

/// Comparison of a checkpoint's tensors with a model. The first three lists prevent loading.
struct LoadReport {
  std::vector<std::string> missing;     // Hugging Face's names of weights that the model needs
  std::vector<std::string> unexpected;  // tensors that the model does not have
  std::vector<std::string> mismatched;  // "NAME: expected [2, 3], found [3, 2]"
  std::vector<std::string> tied;        // equal copies of another weight
  std::vector<std::string> ignored;     // buffers of old checkpoints
  std::vector<std::string> unused;      // of heads that the model lacks
  std::vector<std::string> fresh;       // head weights not in the files: see WeightOptions::may_lack_head
  std::vector<std::string> loaded;

  bool good() const { return missing.empty() && unexpected.empty() && mismatched.empty(); }

  /// The faults on one line, the first names of each kind: "missing 2: a, b; unexpected 1: c; …".
  std::string faults() const;
};

}  // namespace zoo
