#include "apps/verbs/export_packed.h"

#include "apps/command/progress.h"
#include "apps/hub/find_model.h"
#include "apps/verbs/calibration_text.h"
#include "apps/verbs/checkpoint_files.h"
#include "data/base/atomic_file.h"
#include "models/checkpoint/checkpoint.h"
#include "models/inference/save_packed.h"
#include "models/tasks/inference_loading.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

// Name of the source in the header: its name on the hub, or the path as it was given.
std::string source_name(const fs::path& source) {
  const std::string name = model_name(source);
  return name.find('/') == std::string::npos ? source.string() : name;
}

}  // namespace

PackedExport export_packed(const fs::path& source, const fs::path& target, const std::string& weights,
                           const std::string& calibration) {
  const CheckpointConfig checkpoint = read_checkpoint_config(source);
  CalibrationText text;
  std::optional<Progress> progress;
  if (!calibration.empty()) {
    text = calibration_text(checkpoint, calibration);
    text.progress = [&](std::int64_t done, std::int64_t total) {
      if (!progress) progress.emplace(total, "passages");
      progress->update(done);
    };
  }
  check_export_target(source, target);
  AtomicDirectory directory(target);
  ModelFiles(checkpoint).write(directory.path());
  save_packed(checkpoint, weight_type_named(weights).value(), source_name(source), directory.path(), text);
  progress.reset();
  check_packed_weights(read_checkpoint_config(directory.path()));
  const SafetensorsFile file(directory.path() / PackedParts::kFile);
  directory.commit();
  PackedExport made{.tensors = static_cast<std::int64_t>(file.names().size()),
                    .bytes = static_cast<std::int64_t>(fs::file_size(target / PackedParts::kFile))};
  for (const TokenIds& sample : text.samples)
    made.calibration_tokens += static_cast<std::int64_t>(sample.size());
  return made;
}

}  // namespace zoo
