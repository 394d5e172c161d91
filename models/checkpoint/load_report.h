#pragma once

#include <string>
#include <vector>

namespace zoo {

/// How the tensors of a checkpoint fit a model. The first three keep it from being loaded.
struct LoadReport {
  std::vector<std::string> missing;     // their names of weights that the model needs
  std::vector<std::string> unexpected;  // tensors that the model has no place for
  std::vector<std::string> mismatched;  // "NAME: expected [2, 3], found [3, 2]"
  std::vector<std::string> tied;        // held by another weight, equal to it
  std::vector<std::string> ignored;     // buffers of old checkpoints
  std::vector<std::string> unused;      // of heads that the model does not have
  std::vector<std::string> fresh;       // of the head, which they lack: see WeightOptions::may_lack_head
  std::vector<std::string> loaded;

  bool good() const { return missing.empty() && unexpected.empty() && mismatched.empty(); }

  /// Everything that is wrong, on one line: "missing 2: a, b; unexpected 1: c; …".
  std::string faults() const;
};

}  // namespace zoo
