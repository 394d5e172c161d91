#include <algorithm>
#include <array>
#include <iostream>
#include <set>

#include <nlohmann/json.hpp>

#include "apps/command/output.h"
#include "apps/hub/hub_cache.h"
#include "apps/verbs/train/train_parts.h"
#include "data/base/lines.h"
#include "data/base/process_memory.h"
#include "models/checkpoint/peft_adapter.h"
#include "models/inference/frozen_weights.h"
#include "models/layers/recompute.h"
#include "models/registry.h"
#include "models/tasks/encoding_batch.h"
#include "models/tasks/inference_loading.h"

namespace zoo {
namespace {

using nlohmann::json;

using C = TransformerConfig;

constexpr std::array kDropouts{&C::embedding_dropout, &C::attention_dropout, &C::activation_dropout,
                               &C::dropout,           &C::final_dropout,     &C::classifier_dropout,
                               &C::token_dropout,     &C::answer_dropout};

void remove_biases(C& config) {
  config.qkv_bias = config.attention_output_bias = config.feed_forward_bias = config.norm_bias = false;
}

// The experts that a token reads are together as wide as one feed-forward network, as the shared one is.
// Trained from scratch, experts need balance.
void set_experts(const ModelFlags& flags, TransformerConfig& config) {
  if ((flags.n_expert || flags.n_expert_used) && config.num_experts == 0)
    throw UsageError("--n_expert: the family has no mixture of experts");
  if (config.num_experts == 0) return;
  config.num_experts = flags.n_expert.value_or(config.num_experts);
  config.experts_per_token =
      flags.n_expert_used.value_or(std::min(config.experts_per_token, config.num_experts));
  if (config.expert_size > 0 && config.experts_per_token > 0)
    config.expert_size = std::max<std::int64_t>(1, config.feed_forward_size() / config.experts_per_token);
  if (config.shared_expert_size > 0) config.shared_expert_size = config.feed_forward_size();
  config.router_loss = true;
}

std::int64_t vocab_size_of(const TaskData& data) {
  if (data.tokenizer) return data.tokenizer->vocab_size();
  if (data.tokens->vocab_size) return *data.tokens->vocab_size;
  throw Error(
      "the size of the token files' vocabulary is unknown; put their meta.json or tokenizer beside them");
}

// Throws Error for a flag without a key in the family.
TransformerConfig config_of(const TrainFlags& run, const Family& family, const TaskData& data) {
  const ModelFlags& flags = run.model;
  const std::int64_t vocab_size = vocab_size_of(data);
  if (flags.n_embd % flags.n_head != 0)
    throw UsageError("--n_embd ", flags.n_embd, " is not a multiple of --n_head ", flags.n_head);
  if (flags.n_kv_head && flags.n_head % *flags.n_kv_head != 0)
    throw UsageError("--n_head ", flags.n_head, " is not a multiple of --n_kv_head ", *flags.n_kv_head);
  C config = family.base;
  config.vocab_size = vocab_size;
  config.hidden_size = flags.n_embd;
  config.num_layers = flags.n_layer;
  family.keys.set_layers(config);
  config.num_heads = flags.n_head;
  config.num_kv_heads = flags.n_kv_head.value_or(0);
  config.intermediate_size = flags.n_inner.value_or(0);
  if (config.head_dim > 0) config.head_dim = std::max<std::int64_t>(1, flags.n_embd / flags.n_head);
  if (config.embedding_size > 0) config.embedding_size = flags.n_embd;
  set_experts(flags, config);
  std::optional<TokenId> pad_id;
  if (data.tokenizer && run.data.task != Task::kLm) {
    pad_id = data.tokenizer->special_id(SpecialToken::pad);
    if (!pad_id) pad_id = data.tokenizer->eos_id();
  }
  if (pad_id) {
    config.pad_token_id = *pad_id;
  } else if (config.shape == Shape::kDecoder) {
    config.pad_token_id = -1;  // the family's own is another token here, whose embedding would not be trained
  }
  // The family's own, of a larger vocabulary.
  if (config.pad_token_id >= config.vocab_size) config.pad_token_id = -1;
  if (config.shape == Shape::kEncoderDecoder) config.decoder_start_token_id = pad_id.value_or(0);
  const std::int64_t skipped = config.max_positions - config.max_length();
  config.max_positions = std::max(run.data.block_size, run.data.target_length()) + skipped;
  if (!flags.bias) remove_biases(config);
  if (flags.initializer_range) config.initializer_range = *flags.initializer_range;
  for (const auto field : kDropouts)
    if (family.keys.find(field) != nullptr) config.*field = flags.dropout;
  if (flags.activation) {
    const ConfigKey* key = family.keys.find(&C::activation);
    if (key == nullptr)
      throw UsageError("--activation: ", family.model_type, " has no choice of activations");
    const json name{{key->name, *flags.activation}};
    key->read(ConfigReader(name, "--activation"), config);
  }
  if (!data.label_names.empty()) set_labels(config, data.label_names);
  config.problem_type = data.problem_type;
  // Refuses flags that the family's config.json cannot express.
  family.write_config(config);
  return config;
}

// The checkpoint's projections packed; of a resumed run, which saves only adapters, those of their model.
LoadedModel load_frozen(const TrainFlags& flags, CheckpointConfig checkpoint, LoadOptions options) {
  options.stored = true;
  if (const auto adapters = saved_adapters(flags, checkpoint)) {
    const auto& saved = adapters->metadata();
    const std::string base = find_model(PeftAdapter::find_base(saved.at(kAdaptedBase), checkpoint.directory));
    if (const auto weights = saved.find(kAdaptedWeights);
        weights != saved.end() && weights->second != fingerprint_of_weights(base))
      throw Error(base, ": the weights are others than those that ", checkpoint.directory, " adapts");
    checkpoint.use_weights_of(read_checkpoint_config(base));
  } else {
    checkpoint.files();  // refuses a directory of packed weights
  }
  LoadedModel loaded = load_model(std::move(checkpoint), options);
  inference::freeze_projections(*loaded.model, *loaded.stored, *weight_type_named(flags.weights));
  return loaded;
}

LoadedModel load(const TrainFlags& flags, CheckpointConfig checkpoint, const TaskData& data) {
  if (data.problem_type != ProblemType::kByLabels) checkpoint.config.problem_type = data.problem_type;
  LoadOptions options{
      .trainable = true, .head = traits_of(flags.data.task).head, .label_names = data.label_names};
  if (flags.freezes_packed()) return load_frozen(flags, checkpoint, std::move(options));
  // A resumed run already has its head.
  if (flags.init_from != "resume") options.fresh_head_seed = static_cast<std::uint64_t>(flags.compute.seed);
  LoadedModel loaded = load_model(checkpoint, options);
  if (!loaded.report.fresh.empty())
    std::cerr << "not in " << checkpoint.directory.string()
              << ", newly initialised: " << joined(loaded.report.fresh, " ") << "\n";
  return loaded;
}

LoadedModel build(const TrainFlags& flags, const TaskData& data) {
  LoadedModel loaded;
  loaded.family = &family_of(flags);
  loaded.head = traits_of(flags.data.task).head;
  check_head(*loaded.family, loaded.head);
  const TransformerConfig config = config_of(flags, *loaded.family, data);
  const std::int64_t bytes = 4 * build_meta_model(*loaded.family, config, loaded.head)->parameter_count();
  if (const std::int64_t available = available_memory(); available >= 0 && bytes > available)
    throw Error("the model's weights take ", human_bytes(bytes),
                " of memory; available: ", human_bytes(available),
                "; choose a smaller --n_layer or --n_embd");
  loaded.model =
      build_model(*loaded.family, config, loaded.head, static_cast<std::uint64_t>(flags.compute.seed));
  return loaded;
}

}  // namespace

const Family& family_of(const TrainFlags& flags) {
  try {
    if (flags.model.model_type) return find_family(*flags.model.model_type);
  } catch (const Error& error) {
    throw UsageError("--model_type: ", error.what());
  }
  switch (traits_of(flags.data.task).head) {
    case Head::kCausalLm: return find_family("gpt2");
    case Head::kSeq2SeqLm: return find_family("t5");
    default: return find_family("bert");
  }
}

KnownModel known_model(const std::optional<CheckpointConfig>& checkpoint, Task task) {
  KnownModel known;
  if (!checkpoint) return known;
  const ModelPath& directory = checkpoint->directory;
  if (has_tokenizer(directory)) {
    auto tokenizer = load_tokenizer(directory, checkpoint->json.get());
    require_fit(*tokenizer, checkpoint->config, directory);
    known.tokenizer = std::move(tokenizer);
    if (task == Task::kChat || task == Task::kPreference)
      known.chat = ChatFormat::read(directory, directory.adapter);
  }
  if (checkpoint->head != traits_of(task).head) return known;
  known.problem_type = checkpoint->config.problem_type;
  // As Hugging Face's heads compute their loss.
  if (known.problem_type == ProblemType::kByLabels && checkpoint->config.num_labels == 1)
    known.problem_type = ProblemType::kRegression;
  known.label_names = checkpoint->config.label_names;
  for (auto id = std::ssize(known.label_names); id < checkpoint->config.num_labels; ++id)
    known.label_names.push_back("LABEL_" + std::to_string(id));
  return known;
}

nlohmann::json flags_of(const CheckpointConfig& checkpoint, const KnownModel& known) {
  const C& config = checkpoint.config;
  const Family& family = *checkpoint.family;
  json flags{{"model_type", family.model_type},
             {"n_layer", config.num_layers},
             {"n_head", config.num_heads},
             {"n_kv_head", config.kv_heads()},
             {"n_embd", config.hidden_size},
             {"n_inner", config.feed_forward_size()},
             {"initializer_range", config.initializer_range}};
  if (config.num_experts > 0)
    flags.update({{"n_expert", config.num_experts}, {"n_expert_used", config.experts_per_token}});
  const json written = family.write_config(config);
  const ConfigKey* activation = family.keys.find(&C::activation);
  if (activation != nullptr && written.contains(activation->name))
    flags["activation"] = written[activation->name];
  C without = config;
  remove_biases(without);
  flags["bias"] = fields_of(without) != fields_of(config);
  std::set<double> dropouts;
  for (const auto field : kDropouts)
    if (family.keys.find(field) != nullptr) dropouts.insert(config.*field);
  flags["dropout"] = dropouts.size() == 1 ? json(*dropouts.begin()) : json(dropouts);
  if (known.tokenizer) {
    flags["vocab_size"] = known.tokenizer->vocab_size();
    flags["tokenizer"] = known.tokenizer->kind();
  }
  return flags;
}

void require_equal(const json& given, const json& own, const std::filesystem::path& checkpoint) {
  std::vector<std::string> other;
  std::error_code none;
  for (const char* experts : {"n_expert", "n_expert_used"})
    if (given.contains(experts) && !own.contains("n_expert"))
      throw UsageError("--", experts, ": ", checkpoint, " has no mixture of experts");
  for (const auto& [key, value] : given.items()) {
    if (!own.contains(key) || value == own[key]) continue;
    if (key == "tokenizer" && std::filesystem::equivalent(value.get<std::string>(), checkpoint, none))
      continue;
    other.push_back("--" + key + " " + flag_text(value) + " (its own: " + flag_text(own[key]) + ")");
  }
  if (!other.empty())
    throw Error("--init_from: ", checkpoint, " decides ", joined(other), "; leave out what differs");
}

LoadedModel make_model(const TrainFlags& flags, const std::optional<CheckpointConfig>& checkpoint,
                       const TaskData& data, c10::Device device) {
  LoadedModel loaded = checkpoint ? load(flags, *checkpoint, data) : build(flags, data);
  const TransformerConfig& config = loaded.model->config();
  if (config.has_position_table() && flags.data.block_size > config.max_length())
    throw Error("--block_size ", flags.data.block_size, " is longer than the model's ", config.max_length(),
                " positions");
  require_ids_below(data, config.vocab_size);
  if (flags.shards() == Shard::kWeights && std::max(config.layer_dropout, config.decoder_layer_dropout) > 0)
    throw UsageError("--shard weights: not for a model that leaves layers out by chance (layer_dropout); ",
                     "--shard gradients goes with it");
  if (flags.freezes_packed() && !device.is_cpu())
    throw UsageError("--weights ", flags.weights, ": packed weights are for a CPU; add --device cpu");
  recompute_blocks(*loaded.model, flags.activation_checkpointing);
  loaded.model->to(device);
  return loaded;
}

}  // namespace zoo
