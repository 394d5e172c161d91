#include "apps/train_model.h"

#include <algorithm>
#include <iostream>

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "data/base/json_file.h"
#include "models/registry.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Sizes {
  std::int64_t vocab_size, positions;
  std::optional<TokenId> pad_id;
};

// The flags in the words of a family's config.json, which its own reader then understands.
json encoder_json(const ModelFlags& flags, const Sizes& sizes, const std::string& family) {
  if (family == "distilbert") {
    return {{"vocab_size", sizes.vocab_size},
            {"dim", flags.n_embd},
            {"n_layers", flags.n_layer},
            {"n_heads", flags.n_head},
            {"hidden_dim", *flags.n_inner},
            {"max_position_embeddings", sizes.positions},
            {"dropout", flags.dropout},
            {"attention_dropout", flags.dropout},
            {"seq_classif_dropout", flags.dropout},
            {"qa_dropout", flags.dropout},
            {"activation", flags.activation.value_or("gelu")}};
  }
  json config{{"vocab_size", sizes.vocab_size},
              {"hidden_size", flags.n_embd},
              {"num_hidden_layers", flags.n_layer},
              {"num_attention_heads", flags.n_head},
              {"intermediate_size", *flags.n_inner},
              {"max_position_embeddings", sizes.positions},
              {"hidden_dropout_prob", flags.dropout},
              {"attention_probs_dropout_prob", flags.dropout},
              {family == "albert" ? "classifier_dropout_prob" : "classifier_dropout", flags.dropout}};
  if (flags.activation) config["hidden_act"] = *flags.activation;
  if (family == "albert") config["embedding_size"] = flags.n_embd;
  if (family == "roberta") {
    // It counts positions from behind the padding's id.
    config["max_position_embeddings"] = sizes.positions + sizes.pad_id.value_or(1) + 1;
    config["type_vocab_size"] = 1;
  }
  return config;
}

json t5_json(const ModelFlags& flags, const Sizes& sizes) {
  return {{"vocab_size", sizes.vocab_size},
          {"d_model", flags.n_embd},
          {"d_kv", std::max<std::int64_t>(1, flags.n_embd / flags.n_head)},
          {"d_ff", *flags.n_inner},
          {"num_layers", flags.n_layer},
          {"num_heads", flags.n_head},
          {"n_positions", sizes.positions},
          {"dropout_rate", flags.dropout},
          {"feed_forward_proj", flags.activation.value_or("relu")},
          {"decoder_start_token_id", sizes.pad_id.value_or(0)}};
}

json decoder_json(const ModelFlags& flags, const Sizes& sizes, const std::string& family) {
  if (family == "llama") {
    return {{"vocab_size", sizes.vocab_size},
            {"hidden_size", flags.n_embd},
            {"num_hidden_layers", flags.n_layer},
            {"num_attention_heads", flags.n_head},
            {"num_key_value_heads", flags.n_kv_head.value_or(flags.n_head)},
            {"intermediate_size", *flags.n_inner},
            {"max_position_embeddings", sizes.positions},
            {"attention_dropout", flags.dropout},
            {"hidden_act", flags.activation.value_or("silu")}};
  }
  return {{"vocab_size", sizes.vocab_size},
          {"n_positions", sizes.positions},
          {"n_layer", flags.n_layer},
          {"n_head", flags.n_head},
          {"n_embd", flags.n_embd},
          {"n_inner", flags.n_inner ? json(*flags.n_inner) : json()},
          {"activation_function", flags.activation.value_or("gelu_new")},
          {"bias", flags.bias},
          {"embd_pdrop", flags.dropout},
          {"attn_pdrop", flags.dropout},
          {"resid_pdrop", flags.dropout}};
}

TransformerConfig config_of(ModelFlags flags, const Family& family, const Sizes& sizes,
                            const std::vector<std::string>& labels) {
  const std::string& name = family.model_type;
  if (name == "gpt2" || name == "llama") {
    if (name == "llama" && !flags.n_inner) flags.n_inner = 4 * flags.n_embd;
  } else if (!flags.n_inner) {
    flags.n_inner = 4 * flags.n_embd;
  }
  json config = name == "gpt2" || name == "llama" ? decoder_json(flags, sizes, name)
                : name == "t5"                    ? t5_json(flags, sizes)
                                                  : encoder_json(flags, sizes, name);
  if (flags.initializer_range)
    config[name == "t5" ? "initializer_factor" : "initializer_range"] = *flags.initializer_range;
  if (sizes.pad_id) config["pad_token_id"] = *sizes.pad_id;
  for (std::size_t i = 0; i < labels.size(); ++i) config["id2label"][std::to_string(i)] = labels[i];
  return family.read_config(config, "the flags");
}

std::int64_t vocab_size_of(const TaskData& data) {
  if (data.tokenizer) return data.tokenizer->vocab_size();
  if (data.tokens->vocab_size) return *data.tokens->vocab_size;
  throw Error(
      "the size of the token files' vocabulary is unknown; put their meta.json or tokenizer beside them");
}

LoadedModel load(const TrainFlags& flags, const fs::path& checkpoint, const TaskData& data) {
  LoadOptions options{.trainable = true, .head = head_of(flags.data.kind()), .label_names = data.label_names};
  // A run that goes on has its head.
  if (flags.init_from != "resume") options.fresh_head_seed = static_cast<std::uint64_t>(flags.compute.seed);
  LoadedModel loaded = load_model(checkpoint, options);
  if (!loaded.report.fresh.empty()) {
    std::cerr << "not in " << checkpoint.string() << ", newly initialised:";
    for (const std::string& name : loaded.report.fresh) std::cerr << " " << name;
    std::cerr << "\n";
  }
  return loaded;
}

LoadedModel build(const TrainFlags& flags, const TaskData& data) {
  LoadedModel loaded;
  loaded.family = &find_family(model_type_of(flags));
  loaded.head = head_of(flags.data.kind());
  check_head(*loaded.family, loaded.head);
  Sizes sizes{.vocab_size = vocab_size_of(data),
              .positions = std::max(flags.data.block_size, flags.data.target_length()),
              .pad_id = std::nullopt};
  if (data.tokenizer && flags.data.kind() != Task::kLm) {
    sizes.pad_id = data.tokenizer->special_id(SpecialToken::pad);
    if (!sizes.pad_id) sizes.pad_id = data.tokenizer->eos_id();
  }
  const TransformerConfig config = config_of(flags.model, *loaded.family, sizes, data.label_names);
  loaded.model =
      build_model(*loaded.family, config, loaded.head, static_cast<std::uint64_t>(flags.compute.seed));
  return loaded;
}

}  // namespace

std::string model_type_of(const TrainFlags& flags) {
  if (flags.model.model_type) return *flags.model.model_type;
  switch (head_of(flags.data.kind())) {
    case Head::kCausalLm:
      return "gpt2";
    case Head::kSeq2SeqLm:
      return "t5";
    default:
      return "bert";
  }
}

KnownModel known_model(const std::optional<fs::path>& checkpoint, Task task) {
  KnownModel known;
  if (!checkpoint) return known;
  if (has_tokenizer(*checkpoint)) known.tokenizer = load_tokenizer(*checkpoint);
  const CheckpointConfig config = read_checkpoint_config(*checkpoint);
  if (config.head == head_of(task)) known.label_names = config.config.label_names;
  return known;
}

LoadedModel make_model(const TrainFlags& flags, const std::optional<fs::path>& checkpoint,
                       const TaskData& data, c10::Device device) {
  LoadedModel loaded = checkpoint ? load(flags, *checkpoint, data) : build(flags, data);
  const TransformerConfig& config = loaded.model->config();
  // T5's positions have no end.
  if (config.position == PositionKind::kLearned && flags.data.block_size > config.max_length()) {
    throw Error("--block_size ", flags.data.block_size, " is longer than the model's ", config.max_length(),
                " positions");
  }
  if (data.tokenizer && data.tokenizer->vocab_size() > config.vocab_size) {
    throw Error("the tokenizer has ", data.tokenizer->vocab_size(), " tokens, the model's vocabulary only ",
                config.vocab_size);
  }
  require_ids_below(data, config.vocab_size);
  loaded.model->to(device);
  return loaded;
}

}  // namespace zoo
