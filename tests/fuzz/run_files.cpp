#include "apps/training/records/metrics_log.h"
#include "apps/training/records/run_directory.h"
#include "tests/fuzz/file.h"
#include "tests/fuzz/fuzz.h"

// The files that --resume reads: trainer_state.json, then metrics.jsonl.
void zoo::fuzz::read(std::string_view input) {
  const auto parts = parts_of(input, 2);
  write(kTrainerStateFile, parts[0]);
  MetricsLog(write("metrics.jsonl", parts[1]), 5).write({.iter = 5});
  read_trainer_state(directory().path());
}
