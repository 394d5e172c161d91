#include "models/checkpoint/checkpoint.h"
#include "models/registry.h"
#include "tests/fuzz/file.h"
#include "tests/fuzz/fuzz.h"

// An accepted configuration can be built: without memory, and unless it would take long.
void zoo::fuzz::read(std::string_view input) {
  write("config.json", input);
  const CheckpointConfig checkpoint = read_checkpoint_config(directory().path());
  const TransformerConfig& config = checkpoint.config;
  if (config.num_layers + config.num_decoder_layers <= 8 && config.num_experts <= 8)
    build_meta_model(*checkpoint.family, config, checkpoint.head);
}
