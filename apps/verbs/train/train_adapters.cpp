#include <iostream>
#include <map>

#include <nlohmann/json.hpp>

#include "apps/command/arguments.h"
#include "apps/hub/hub_cache.h"
#include "apps/verbs/checkpoint_files.h"
#include "apps/verbs/train/train_parts.h"
#include "data/base/json.h"
#include "data/base/lines.h"
#include "models/checkpoint/peft_adapter.h"
#include "models/formats/config_reader.h"
#include "models/inference/frozen_weights.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTrains = "trains";  // metadata key of that file

bool is_adapter(const fs::path& directory) {
  return fs::exists(directory / kAdapterConfig) && !fs::exists(directory / "config.json");
}

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

// The adapter's terms and the parameters that it has whole.
void go_on_with(const TrainFlags& flags, const CheckpointConfig& checkpoint, const LoadedModel& loaded,
                LoraAdapters::Options& options) {
  const PeftAdapter adapter(flags.init_from);
  const WeightTable table = weight_table_of(*loaded.family, loaded.model->config(), loaded.head);
  const std::int64_t layers = loaded.model->config().num_layers;
  const std::vector<std::string> whole = adapter.whole(table, layers);
  if (flags.freezes_packed() && !whole.empty())
    throw UsageError("--weights ", flags.weights, ": not with an adapter that has whole tensors, such as ",
                     whole.front());
  options.terms = adapter.terms(checkpoint.files(), table, layers);
  options.trains.insert(options.trains.end(), whole.begin(), whole.end());
  options.base = PeftAdapter::base_of(flags.init_from);
}

// Without a limit transformers' pipelines do not cut a text that is longer than the table of positions.
void limit_length(const fs::path& settings, const TransformerConfig& config) {
  nlohmann::json values = read_json(settings);
  if (!config.has_position_table() || values.contains("model_max_length")) return;
  values["model_max_length"] = config.max_length();
  write_json(settings, values);
}

}  // namespace

void take_adapter(const Flags& flags, TrainFlags& values) {
  if (!is_adapter(values.init_from)) return;
  const fs::path file = fs::path(values.init_from) / kAdapterConfig;
  const nlohmann::json content = read_json(file);
  const ConfigReader config(content, file.string());
  const auto take = [&](const char* flag, auto& value, const auto& own) {
    if (flags.given(flag) && value != own)
      throw UsageError("--", flag, " ", flag_text(value), ": the adapter ", values.init_from, " has ",
                       flag_text(own));
    value = own;
  };
  take("lora_rank", values.lora.rank, config.get_int("r", 8));
  take("lora_alpha", values.lora.alpha, config.get_double("lora_alpha", 8));
  take("lora_rslora", values.lora.rslora, config.get_bool("use_rslora", false));
  take("lora_dora", values.lora.dora, config.get_bool("use_dora", false));
  for (const auto& [flag, given] : {std::pair("lora_targets", !values.lora.targets.empty()),
                                    std::pair("adapter", !values.adapter.empty())})
    if (given) throw UsageError("--", flag, ": not with --init_from ", values.init_from, ", an adapter");
  for (const char* key : {"rank_pattern", "alpha_pattern"})
    if (config.has(key) && !config.at(key).empty())
      config.refuse(key, "training goes on with one rank and one scale for all modules");
  if (config.get_string("bias", "none") != "none") config.refuse("bias", "training goes on without biases");
  if (const double dropout = config.get_double("lora_dropout", 0); dropout > 0)
    std::cerr << "note: training goes on without the lora_dropout " << dropout << " of " << file.string()
              << "\n";
}

std::string base_of_adapter(const fs::path& directory) {
  if (!is_adapter(directory)) return "";
  const std::string base = PeftAdapter::base_of(directory);
  if (base.empty()) throw Error(directory / kAdapterConfig, " does not name a base_model_name_or_path");
  return find_model(base);
}

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
  std::string weights;
  if (packed && adapters && checkpoint && !adapters->options().base.empty())
    weights = fingerprint_of_weights(
        find_model(PeftAdapter::find_base(adapters->options().base, checkpoint->directory)));
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
            std::map<std::string, std::string> about{{kTrains, joined(adapters->options().trains, "\n")},
                                                     {kAdaptedBase, adapters->options().base}};
            if (!weights.empty()) about[kAdaptedWeights] = weights;
            write_safetensors(directory / kAdaptersFile, adapters->state(), about);
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
    if (is_adapter(flags.init_from)) go_on_with(flags, *checkpoint, loaded, options);
    if (const auto saved = checkpoint ? saved_adapters(flags, *checkpoint) : std::nullopt) {
      // A head that was new at the start of the run is not new now.
      options.trains.clear();
      for (const Line& line : lines_of(saved->metadata().at(kTrains))) options.trains.emplace_back(line.text);
      const auto base = saved->metadata().find(kAdaptedBase);  // which releases before had not
      options.base = base == saved->metadata().end() ? "" : base->second;
      options.terms = LoraAdapters::terms_in(*saved, *loaded.model, options);
    }
    adapters = LoraAdapters::add_to(*loaded.model, options);
  }
  freeze(*loaded.model, flags.freeze);
  return adapters;
}

}  // namespace zoo
