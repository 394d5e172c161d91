#include <algorithm>
#include <array>
#include <set>

#include <nlohmann/json.hpp>

#include "apps/training/records/run_directory.h"
#include "apps/training/training_fields.h"
#include "apps/verbs/train/train_parts.h"
#include "data/base/lines.h"
#include "data/corpora/sha256.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

// What may change when a run is resumed, besides the trainer's options that say so themselves. A dataset may
// lie elsewhere: require_same_data() compares its content.
constexpr auto kMayChange = std::to_array<std::string_view>(
    {"out_dir", "init_from", "overwrite", "dry_run", "tokens_per_parameter", "dataset", "val_dataset",
     "teacher_file",
     // where and how it is computed
     "device", "dtype", "threads", "activation_checkpointing", "mini_batch_size", "shard", "shard_optimizer",
     // how processes are started and connected
     "processes", "restart", "master_addr", "master_port", "rank_timeout", "gradient_wire",
     // the record
     "sample_interval", "sample_prompt", "keep_checkpoints"});

// Whether the loss of a row depends on the others of its micro batch, which is of all ranks.
bool compares_rows(const TrainFlags& flags) {
  if (flags.data.task == Task::kEmbedding) return flags.teacher.empty() && flags.embedding.loss != "cosine";
  return flags.data.task == Task::kPreference && flags.preference.loss == PreferenceLoss::kKto;
}

bool may_change(std::string_view key) {
  TrainerOptions options;
  const std::vector<TrainingField> fields = training_fields(options);
  const auto field = std::ranges::find(fields, key, &TrainingField::name);
  return field != fields.end() ? field->resumed == Resumed::kMayChange
                               : std::ranges::find(kMayChange, key) != kMayChange.end();
}

}  // namespace

void require_same_run(const std::filesystem::path& run, const nlohmann::json& started,
                      const nlohmann::json& now) {
  std::vector<std::string> changed;
  for (const auto& [key, value] : now.items()) {
    if (value == started.at(key) || may_change(key)) continue;
    changed.push_back("--" + key + " " + flag_text(value) + " (at its start: " + flag_text(started.at(key)) +
                      ")");
  }
  if (changed.empty()) return;
  throw Error("a resumed run cannot change ", joined(changed), "; start another with --init_from ",
              run / "checkpoints" / "STEP", " and a new --out_dir");
}

std::string fingerprint_of_weights(const fs::path& model) {
  std::set<fs::path> files{model};
  if (fs::is_directory(model)) {
    files.clear();
    for (const fs::path& file : fs::recursive_directory_iterator(model))  // modules have folders of their own
      if (file.extension() == ".safetensors" || file.extension() == ".bin") files.insert(file);
  }
  std::string all;
  for (const fs::path& path : files) all += fingerprint_of_file(path);
  return sha256(all);
}

void require_same_data(const fs::path& checkpoint, const TrainFlags& flags, const std::string& sha256) {
  constexpr std::size_t kDigits = 64;
  const std::string trained = read_trainer_state(checkpoint).data_sha256;
  if (trained.empty() || trained == sha256) return;
  std::size_t same = 0;  // hashes
  while (trained.compare(same * kDigits, kDigits, sha256, same * kDigits, kDigits) == 0) ++same;
  std::string changed = "--dataset: " + flags.data.dataset;
  if (!flags.teacher.empty() && (same + 1) * kDigits == sha256.size()) {
    if (trained.size() == same * kDigits) return;  // of an older version
    changed = "--teacher: " + flags.teacher.string();
  } else if (same == 1 && flags.data.val_dataset) {
    changed = "--val_dataset: " + *flags.data.val_dataset;
  }
  throw Error(changed, " has changed since the run's checkpoint ", checkpoint,
              "; expected the same data. To go on with other data start another run with --init_from ",
              checkpoint, " and a new --out_dir");
}

std::int64_t equal_accumulation(const std::filesystem::path& checkpoint, const TrainFlags& flags,
                                std::int64_t ranks) {
  const TrainerState state = read_trainer_state(checkpoint);
  const std::int64_t all = state.micro_batches, accumulation = flags.trainer.updater.accumulation;
  if (all == 0) return accumulation;
  if (state.micro_steps > 0 && ranks > 1)
    throw Error(checkpoint, " was saved inside of an update, by one process; go on with one");
  if (all % ranks != 0)
    throw Error(checkpoint, ": an update of this run has ", all, " micro batches, which ", ranks,
                " ranks cannot share; start a number of them that divides ", all);
  if (all / ranks != accumulation && compares_rows(flags))
    throw Error("the loss compares all rows of a micro batch, which has fewer or more of them on another ",
                "number of ranks; go on with as many as before");
  return all / ranks;
}

}  // namespace zoo
