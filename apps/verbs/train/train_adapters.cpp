#include "apps/command/arguments.h"
#include "apps/verbs/checkpoint_files.h"
#include "apps/verbs/train/train_parts.h"
#include "data/base/json.h"
#include "data/base/lines.h"
#include "models/checkpoint/peft_adapter.h"
#include "models/inference/frozen_weights.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTrains = "trains";  // metadata key of that file

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
  const auto save_templates = [templates](const fs::path& directory) {
    if (!templates.empty()) fs::remove_all(directory / "additional_chat_templates");  // other ones
    for (const auto& [path, bytes] : templates) {
      fs::create_directories((directory / path).parent_path());
      write_file(directory / path, bytes);
    }
  };
  const auto save_files = [=](const fs::path& directory) {
    if (writes_tokenizer) {
      tokenizer->save(directory);
      limit_length(directory / "tokenizer_config.json", loaded.model->config());
    }
    if (files) files->write(directory);
    save_templates(directory);
    if (more) more(directory);
  };
  const bool packed = inference::frozen_bytes(*loaded.model) > 0;  // these weights stay where they are
  const auto save_base = [=](const fs::path& directory, const SaveOptions& how) {
    if (packed) save_config(*loaded.model, *loaded.family, loaded.head, directory, how);
    else save_model(*loaded.model, *loaded.family, loaded.head, directory, how);
    save_files(directory);
  };
  const std::vector<std::string> unknown = files ? files->unknown() : std::vector<std::string>();
  if (!adapters) return {[=](const fs::path& directory) { save_base(directory, options); }, nullptr, unknown};
  const auto save_beside = [=](const fs::path& directory) {
    save_adapter(loaded,
                 {.terms = adapters->terms(),
                  .whole = adapters->options().trains,
                  .base = adapters->options().base,
                  .alpha = adapters->options().alpha,
                  .rslora = adapters->options().rslora},
                 directory);
  };
  return {[=](const fs::path& directory) {
            if (packed) {
              save_beside(directory);
              return save_files(directory);
            }
            SaveOptions merged = options;
            merged.replaced = adapters->merged_weights();
            save_base(directory, merged);
            if (adapters->options().base.empty()) return;
            save_beside(directory / "adapter");
            save_templates(directory / "adapter");
          },
          [=](const fs::path& directory) {
            save_base(directory, options);
            write_safetensors(directory / kAdaptersFile, adapters->state(),
                              {{kTrains, joined(adapters->options().trains, "\n")},
                               {kAdaptedBase, adapters->options().base}});
          },
          unknown};
}

std::optional<SafetensorsFile> saved_adapters(const TrainFlags& flags, const CheckpointConfig& checkpoint) {
  const fs::path file = checkpoint.directory / kAdaptersFile;
  if (flags.init_from != "resume" || !fs::exists(file)) return std::nullopt;
  SafetensorsFile saved(file);
  saved.verify();
  return saved;
}

std::shared_ptr<LoraAdapters> adapt(const TrainFlags& flags,
                                    const std::optional<CheckpointConfig>& checkpoint,
                                    const LoadedModel& loaded) {
  std::shared_ptr<LoraAdapters> adapters;
  if (flags.lora.rank > 0) {
    LoraAdapters::Options options = flags.lora;
    if (options.targets.empty()) options.targets = LoraAdapters::Options().targets;
    options.trains = fresh_parameters(loaded);
    if (checkpoint && checkpoint->directory.adapter.empty()) options.base = checkpoint->directory.string();
    options.seed = static_cast<std::uint64_t>(flags.compute.seed);
    std::optional<SafetensorsFile> saved;
    if (checkpoint) saved = saved_adapters(flags, *checkpoint);
    if (saved) {
      // A head that was new at the start of the run is not new now.
      options.trains.clear();
      for (const Line& line : lines_of(saved->metadata().at(kTrains))) options.trains.emplace_back(line.text);
      const auto base = saved->metadata().find(kAdaptedBase);  // which releases before had not
      options.base = base == saved->metadata().end() ? "" : base->second;
    }
    adapters = LoraAdapters::add_to(*loaded.model, options);
    if (saved) adapters->load_state(*saved);
  }
  freeze(*loaded.model, flags.freeze);
  return adapters;
}

}  // namespace zoo
