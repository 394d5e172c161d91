#include "models/checkpoint/checkpoint.h"

#include <algorithm>
#include <cctype>

#include <ATen/CPUGeneratorImpl.h>
#include <nlohmann/json.hpp>

#include "data/base/atomic_file.h"
#include "data/base/field_error.h"
#include "data/base/json.h"
#include "data/base/lines.h"
#include "models/checkpoint/peft_adapter.h"
#include "models/formats/config_reader.h"
#include "models/formats/weight_files.h"
#include "models/gguf/gguf_architecture.h"
#include "models/layers/parameter.h"
#include "models/model.h"
#include "models/registry.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfigFile = "config.json";

// The head of the first architecture; `otherwise` if the zoo does not have it.
Head head_of(const nlohmann::json& json, const Family& family, const std::string& source,
             std::optional<Head> otherwise) {
  const auto found = json.find("architectures");
  if (found == json.end() || found->is_null()) return family.heads.front().head;
  if (!found->is_array() || found->empty() || !found->front().is_string())
    throw Error(source, ": 'architectures' must be a list of names, got ", found->dump());
  const auto& name = found->front().get_ref<const std::string&>();
  const auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
  std::vector<std::string> known;
  for (const auto& entry : family.heads) {
    if (std::ranges::equal(entry.architecture, name, same))
      return entry.head;  // MPTForCausalLM in older files
    known.push_back(entry.architecture);
  }
  if (otherwise) return *otherwise;
  throw FieldError(source, ": 'architectures' names ", name, ", which the zoo does not have; it has ",
                   joined(known), " (where ", Field{"head"}, " can be given, it chooses one)");
}

[[noreturn]] void refuse_head(const CheckpointConfig& checkpoint, Head wanted, const std::string& reason) {
  throw Error(checkpoint.directory, " has a ", name_of(checkpoint.own_head), " head; expected ",
              name_of(wanted), reason);
}

// Throws Error if the family lacks the head.
void choose_head(CheckpointConfig& checkpoint, Head head) {
  try {
    check_head(*checkpoint.family, head);
  } catch (const Error& error) {
    refuse_head(checkpoint, head, std::string(": ") + error.what());
  }
  checkpoint.head = head;
}

const char* dtype_name(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat: return "float32";
    case at::kBFloat16: return "bfloat16";
    case at::kHalf: return "float16";
    default: throw Error("weights are float32, bfloat16 or float16, not ", c10::toString(dtype));
  }
}

// Sets the configuration, and in the JSON the keys that say the difference.
void change_config(CheckpointConfig& checkpoint, const TransformerConfig& config) {
  if (fields_of(config) == fields_of(checkpoint.config)) return;
  const nlohmann::json before = checkpoint.family->write_config(checkpoint.config);
  const nlohmann::json after = checkpoint.family->write_config(config);
  auto json = std::make_shared<nlohmann::json>(*checkpoint.json);
  for (const auto& [key, value] : after.items())
    if (!before.contains(key) || before[key] != value) (*json)[key] = value;
  for (const auto& [key, value] : before.items())
    if (!after.contains(key)) json->erase(key);  // a default from now on
  if (config.num_labels != checkpoint.config.num_labels) json->erase("num_labels");
  checkpoint.config = config;
  checkpoint.json = std::move(json);
}

// Takes the output projection of the files: as in transformers, a projection whose numbers differ from the
// tied embedding's becomes untied, and so does its bias.
void keep_own_projection(CheckpointConfig& checkpoint) {
  if (!WeightFiles::exist_in(checkpoint.directory)) return;
  const WeightFiles& files = checkpoint.files();
  const TransformerConfig& config = checkpoint.config;
  if (!config.tie_word_embeddings && !config.tie_prediction_bias) return;
  TransformerConfig untied = config;
  untied.tie_word_embeddings = untied.tie_prediction_bias = false;
  const Family& family = *checkpoint.family;
  const WeightTable tied = family.weight_table(config), own = family.weight_table(untied);
  const StoredNames names(tied, files);
  bool own_weight = !config.tie_word_embeddings, shares_bias = false;
  for (const auto& pair : tied.tied) {
    const auto is_copy = [&](const WeightName& name) { return name.theirs.front() == pair.first; };
    if (std::ranges::none_of(own.names, is_copy)) continue;
    const std::string copy = names.stored(pair.first), original = names.stored(pair.second);
    // If the files have only a copy, other rules of transformers decide the tie.
    const bool both = files.contains(copy) && files.contains(original) && original.ends_with(pair.second);
    const bool differs = both && !files.equal(copy, original);
    if (pair.first.ends_with(".bias")) {
      shares_bias = !differs;
    } else {
      own_weight = own_weight || differs;
    }
  }
  if (!own_weight) return;
  untied.tie_prediction_bias = shares_bias;
  change_config(checkpoint, untied);
}

// Files of a masked language model, for example, have no pooler, and last_hidden_state needs none.
void fit_pooler(Model& model, const CheckpointConfig& checkpoint) {
  if (checkpoint.head != Head::kBase) return;
  const WeightTable table = checkpoint.family->weight_table(checkpoint.config);
  const WeightFiles& files = checkpoint.files();
  const StoredNames names(table, files);
  const bool found = std::any_of(table.names.begin(), table.names.end(), [&](const WeightName& name) {
    return name.ours.starts_with("pooler.") && files.contains(names.stored(name.theirs.front()));
  });
  if (!found) model.remove_pooler();
}

// Names what the directory holds instead.
[[noreturn]] void refuse_without_config(const fs::path& directory) {
  const fs::path adapter = directory / kAdapterConfig;
  if (fs::exists(adapter))
    throw FieldError(directory, " has no ", kConfigFile, ": it is a PEFT adapter of '",
                     PeftAdapter::base_of(directory), "'; name that as ", Field{"model"},
                     " and this directory as ", Field{"adapter"});
  for (const fs::directory_entry& file : fs::directory_iterator(directory)) {
    if (file.path().extension() == ".pt")
      throw Error(
          directory, " has no ", kConfigFile, ": ", file.path().filename(),
          " is a pickle (nanoGPT's ckpt.pt is one), which the zoo does not read; expected a directory "
          "that transformers' save_pretrained() has written");
  }
  throw Error("cannot open ", directory / kConfigFile,
              ": no such file; expected a checkpoint of transformers");
}

}  // namespace

const std::shared_ptr<const WeightFiles>& CheckpointConfig::shared_files() const {
  if (const auto packed = packed_parts()) packed->refuse_modules();
  if (!files_) files_ = std::make_shared<WeightFiles>(directory);
  return files_;
}

std::shared_ptr<PackedParts> CheckpointConfig::packed_parts() const {
  if (!PackedParts::exist_in(directory)) return nullptr;
  if (WeightFiles::exist_in(directory))
    throw Error(directory, " holds ", PackedParts::kFile, " and weights of modules; expected one of them");
  return std::make_shared<PackedParts>(directory);
}

void CheckpointConfig::merge(const PeftAdapter& adapter, bool with_terms) {
  const WeightTable table = family->weight_table(config);
  files_ = adapter.merged_into(shared_files(), table, config.num_layers, with_terms);
  const StoredNames names(table, *files_);
  for (const WeightName& name : table.names) {
    const std::string theirs = names.own(name.theirs.front());
    const bool is_head = name.ours == "score.weight" || name.ours.ends_with("_classifier.weight");
    if (!is_head || !files_->contains(theirs)) continue;
    const std::vector<std::int64_t>& shape = files_->entry(theirs).shape;
    // Another shape does not tell the number of labels; the check of shapes names it.
    if (shape.size() != 2 || shape.back() == 0) continue;
    const auto count = static_cast<std::size_t>(shape.front());
    TransformerConfig labelled = config;
    if (adapter.label_names().size() == count) {
      set_labels(labelled, adapter.label_names());
    } else if (config.label_names.size() != count) {
      labelled.num_labels = shape.front();
      labelled.label_names.clear();
    }
    change_config(*this, labelled);
  }
}

std::string architecture_of(const Family& family, Head head) {
  for (const auto& entry : family.heads)
    if (entry.head == head) return entry.architecture;
  throw Error(family.model_type, " has no ", name_of(head), " head");
}

WeightTable weight_table_of(const Family& family, const TransformerConfig& config, Head head) {
  WeightTable table = family.weight_table(config);
  if (head == Head::kBase) table.prefix.clear();
  return table;
}

// The path and the content of config.json.
CheckpointConfig open_checkpoint(const ModelPath& path) {
  CheckpointConfig checkpoint;
  checkpoint.directory = path;
  if (GgufFile::is_one(path)) {
    const GgufFile file(path);
    checkpoint.config_file = path;
    checkpoint.json = std::make_shared<const nlohmann::json>(config_of(file));
    checkpoint.files_ = std::make_shared<const WeightFiles>(gguf_tensors(file));
    return checkpoint;
  }
  std::error_code error;
  if (fs::is_regular_file(path, error) && fs::file_size(path, error) < 1024)
    refuse_lfs_pointer(path, read_file(path));
  if (!fs::is_directory(path))
    throw Error(path,
                " is not a directory; expected a checkpoint, with config.json and model.safetensors, or a "
                "GGUF file");
  checkpoint.config_file = path / kConfigFile;
  if (!fs::exists(checkpoint.config_file)) refuse_without_config(path);
  checkpoint.json = std::make_shared<const nlohmann::json>(read_json(checkpoint.config_file));
  return checkpoint;
}

CheckpointConfig read_checkpoint_config(const ModelPath& directory, std::optional<Head> head,
                                        bool applies_adapters) {
  CheckpointConfig checkpoint = open_checkpoint(directory);
  std::optional<PeftAdapter> adapter;
  if (!directory.adapter.empty()) adapter.emplace(directory.adapter);
  if (!applies_adapters && fs::exists(directory / kAdaptersFile))
    throw Error(directory, " holds a model before its adapters (", kAdaptersFile,
                "), which only a resumed run applies; the model in the run's final or best has them merged");
  const auto said = checkpoint.json;
  const nlohmann::json& json = *said;
  const std::string source = checkpoint.config_file.string();
  const std::string model_type = ConfigReader(json, source).get_string("model_type", "");
  if (model_type.empty()) throw Error(source, ": the key 'model_type' is missing");
  try {
    checkpoint.family = &find_family(model_type);
  } catch (const Error& error) {
    throw Error(source, ": ", error.what());
  }
  checkpoint.config = checkpoint.family->read_config(json, source);
  if (checkpoint.family->complete_config != nullptr && WeightFiles::exist_in(directory))
    checkpoint.family->complete_config(checkpoint.config, checkpoint.files());
  try {
    checkpoint.config.validate();
  } catch (const c10::Error& error) {
    throw Error(source, ": ", checkpoint.family->keys.in_own_names(error.what_without_backtrace()));
  }
  if (adapter) checkpoint.merge(*adapter, /*with_terms=*/!applies_adapters);
  keep_own_projection(checkpoint);
  const std::vector<std::string> unknown = checkpoint.family->keys.unknown(checkpoint.family->base, json);
  if (!unknown.empty())
    TORCH_WARN(source, ": ignoring config keys that the ", model_type,
               " family does not use: ", joined(unknown));
  const auto has_head = [&](const auto& entry) { return adapter && adapter->head() == entry.head; };
  const bool of_adapter = std::ranges::any_of(checkpoint.family->heads, has_head);
  checkpoint.own_head = of_adapter ? *adapter->head() : head_of(json, *checkpoint.family, source, head);
  choose_head(checkpoint, head.value_or(checkpoint.own_head));
  return checkpoint;
}

LoadedModel load_model(const ModelPath& directory, const LoadOptions& options) {
  return load_model(read_checkpoint_config(directory, options.head), options);
}

LoadedModel load_model(CheckpointConfig checkpoint, const LoadOptions& options) {
  if (options.head) choose_head(checkpoint, *options.head);
  if (!options.label_names.empty()) set_labels(checkpoint.config, options.label_names);
  const fs::path& directory = checkpoint.directory;
  std::shared_ptr<Model> model;
  try {
    const bool fresh = options.fresh_head_seed.has_value();
    const ParameterScope scope(fresh ? ParameterInit::kUninitialized : ParameterInit::kDeferred);
    model = checkpoint.family->build(checkpoint.config, checkpoint.head);
    if (fresh) model->initialize(at::detail::createCPUGenerator(*options.fresh_head_seed));
  } catch (const c10::Error& error) {
    throw Error(checkpoint.config_file, ": ", error.what_without_backtrace());
  }
  const auto packed = checkpoint.packed_parts();
  if (packed && !options.stored) packed->refuse_modules();
  if (!packed) fit_pooler(*model, checkpoint);
  LoadReport report;
  const auto stored = options.stored ? std::make_shared<StoredWeights>(packed) : nullptr;
  try {
    const WeightOptions weights{
        .dtype = options.dtype,
        .trainable = options.trainable,
        .may_lack_head = options.fresh_head_seed || checkpoint.head != checkpoint.own_head,
        .stored = stored.get()};
    report = packed ? packed->load(*model, checkpoint, *stored, options.dtype)
                    : load_weights(*model, checkpoint.family->weight_table(checkpoint.config),
                                   checkpoint.shared_files(), weights);
  } catch (const Error& error) {
    throw Error(directory, ": ", error.what());
  }
  if (!report.fresh.empty() && !options.fresh_head_seed)
    refuse_head(checkpoint, checkpoint.head,
                ": " + LoadReport{.missing = report.fresh}.faults() +
                    "; training makes a new head (LoadOptions::fresh_head_seed)");
  if (options.device != c10::kCPU) model->to(options.device);
  model->eval();
  return {model, checkpoint.family, checkpoint.head, std::move(report), stored};
}

LoadReport inspect_weights(const CheckpointConfig& checkpoint) {
  const auto model = build_meta_model(*checkpoint.family, checkpoint.config, checkpoint.head);
  fit_pooler(*model, checkpoint);
  return match_weights(*model, checkpoint.family->weight_table(checkpoint.config), checkpoint.files());
}

void save_config(const Model& model, const Family& family, Head head, const fs::path& directory,
                 const SaveOptions& options) {
  nlohmann::json config = family.write_config(model.config());
  config["model_type"] = family.model_type;
  // Set here unless the family sets it (it may depend on more than the head).
  if (!config.contains("architectures")) config["architectures"] = {architecture_of(family, head)};
  config["dtype"] = dtype_name(options.dtype);
  // Without it, transformers would use GPT-2's 50256 for any vocabulary.
  config["bos_token_id"] = nullptr;
  if (!config.contains("eos_token_id")) config["eos_token_id"] = nullptr;
  // transformers takes the tokens of generation from generation_config.json alone.
  nlohmann::json generation = nlohmann::json::object();
  for (const char* key :
       {"pad_token_id", "decoder_start_token_id", "forced_bos_token_id", "forced_eos_token_id"})
    if (config.contains(key) && !config[key].is_null()) generation[key] = config[key];
  if (options.eos_token_id) config["eos_token_id"] = generation["eos_token_id"] = *options.eos_token_id;
  write_json(directory / kConfigFile, config);
  write_json(directory / "generation_config.json", generation);
}

void save_model(const Model& model, const Family& family, Head head, const fs::path& directory,
                const SaveOptions& options) {
  NamedTensors tensors =
      export_weights(model, weight_table_of(family, model.config(), head), options.replaced);
  for (auto& [name, tensor] : tensors) {
    tensor = tensor.to(options.dtype);
    if (options.dtype == at::kHalf && !tensor.isfinite().all().item<bool>())
      throw Error("'", name, "' has numbers that float16 does not hold; bfloat16 does");
  }
  write_safetensors(directory / "model.safetensors", tensors);
  // Shards of an earlier save, which some programs read instead.
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("model-") && name.find("-of-") != name.npos && name.ends_with(".safetensors"))
      fs::remove(entry.path());
  }
  fs::remove(directory / "model.safetensors.index.json");
  save_config(model, family, head, directory, options);
}

}  // namespace zoo
