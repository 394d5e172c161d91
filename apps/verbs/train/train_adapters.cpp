#include "apps/command/arguments.h"
#include "apps/verbs/checkpoint_files.h"
#include "apps/verbs/train/train_parts.h"
#include "data/base/json.h"
#include "data/base/lines.h"
#include "models/checkpoint/peft_adapter.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

constexpr const char *kTrains = "trains", *kBase = "base";  // metadata keys of that file

// Our parameter names for the weights of a new head.
std::vector<std::string> fresh_parameters(const LoadedModel& loaded) {
  std::vector<std::string> names;
  const WeightTable table = loaded.family->weight_table(loaded.model->config());
  for (const WeightName& name : expand_layers(table.names, loaded.model->config().num_layers)) {
    for (const std::string& fresh : loaded.report.fresh)
      if (fresh.ends_with(name.theirs.front())) names.push_back(name.ours);
  }
  return names;
}

// Without a limit transformers' pipelines do not cut a text that is longer than the table of positions.
void limit_length(const fs::path& settings, const TransformerConfig& config) {
  nlohmann::json values = read_json(settings);
  if (!config.has_position_table() || values.contains("model_max_length")) return;
  values["model_max_length"] = config.max_length();
  write_json(settings, values);
}

}  // namespace

Savers savers(const LoadedModel& loaded, const std::optional<CheckpointConfig>& checkpoint,
              const TaskData& data, std::shared_ptr<LoraAdapters> adapters, const Trainer::SaveModel& more) {
  SaveOptions options;
  const std::shared_ptr<const Tokenizer> tokenizer = data.tokenizer;
  const auto templates = data.chat ? data.chat->files() : std::map<std::string, std::string>();
  if (tokenizer && tokenizer->eos_id()) options.eos_token_id = *tokenizer->eos_id();
  std::shared_ptr<const ModelFiles> files;
  if (checkpoint) files = std::make_shared<ModelFiles>(*checkpoint);
  // A checkpoint's own files say more than the tokenizer that was read from them.
  const bool writes_tokenizer = tokenizer && !(checkpoint && has_tokenizer(checkpoint->directory));
  const auto save = [=](const fs::path& directory, const SaveOptions& how) {
    save_model(*loaded.model, *loaded.family, loaded.head, directory, how);
    if (writes_tokenizer) {
      tokenizer->save(directory);
      limit_length(directory / "tokenizer_config.json", loaded.model->config());
    }
    if (files) files->write(directory);
    if (!templates.empty()) fs::remove_all(directory / "additional_chat_templates");  // other ones
    for (const auto& [path, bytes] : templates) {
      fs::create_directories((directory / path).parent_path());
      write_file(directory / path, bytes);
    }
    if (more) more(directory);
  };
  const auto save_own = [save, options](const fs::path& directory) { save(directory, options); };
  if (!adapters) return {save_own, nullptr};
  return {[save, options, loaded, adapters](const fs::path& directory) {
            SaveOptions merged = options;
            merged.replaced = adapters->merged_weights();
            save(directory, merged);
            if (adapters->base().empty()) return;
            save_adapter(loaded,
                         {.terms = adapters->terms(), .whole = adapters->trains(), .base = adapters->base()},
                         directory / "adapter");
          },
          [save_own, adapters](const fs::path& directory) {
            save_own(directory);
            write_safetensors(directory / kAdaptersFile, adapters->state(),
                              {{kTrains, joined(adapters->trains(), "\n")}, {kBase, adapters->base()}});
          }};
}

std::shared_ptr<LoraAdapters> adapt(const TrainFlags& flags,
                                    const std::optional<CheckpointConfig>& checkpoint,
                                    const LoadedModel& loaded) {
  std::shared_ptr<LoraAdapters> adapters;
  if (flags.lora.rank > 0) {
    if (flags.activation_checkpointing)
      throw UsageError("--lora_rank cannot be combined with --activation_checkpointing");
    LoraAdapters::Options options = flags.lora;
    if (options.targets.empty()) options.targets = LoraAdapters::Options().targets;
    options.trains = fresh_parameters(loaded);
    if (checkpoint && checkpoint->directory.adapter.empty()) options.base = checkpoint->directory.string();
    options.seed = static_cast<std::uint64_t>(flags.compute.seed);
    std::optional<SafetensorsFile> saved;
    if (flags.init_from == "resume" && checkpoint && fs::exists(checkpoint->directory / kAdaptersFile)) {
      saved.emplace(checkpoint->directory / kAdaptersFile);
      saved->verify();
      // A head that was new at the start of the run is not new now.
      options.trains.clear();
      for (const Line& line : lines_of(saved->metadata().at(kTrains))) options.trains.emplace_back(line.text);
      const auto base = saved->metadata().find(kBase);  // which releases before had not
      options.base = base == saved->metadata().end() ? "" : base->second;
    }
    adapters = LoraAdapters::add_to(*loaded.model, options);
    if (saved) adapters->load_state(*saved);
  }
  freeze(*loaded.model, flags.freeze);
  return adapters;
}

}  // namespace zoo
