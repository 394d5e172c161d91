#include "apps/verbs/train/embedding_task.h"

#include <algorithm>
#include <cmath>
#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/training/retrieval_losses.h"
#include "apps/verbs/train/embedding_objective.h"
#include "data/base/error.h"
#include "data/base/json_file.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char *kModuleList = "modules.json", *kPoolingFolder = "1_Pooling",
                     *kSentenceSettings = "config_sentence_transformers.json",
                     *kTransformerSettings = "sentence_bert_config.json";

std::vector<std::int64_t> sizes_in(const std::string& text) {
  std::vector<std::int64_t> sizes;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string size = text.substr(begin, end - begin);
    const bool good =
        !size.empty() && size.size() < 8 && size.find_first_not_of("0123456789") == std::string::npos;
    sizes.push_back(good ? std::stoll(size) : 0);
    if (sizes.back() < 1)
      throw UsageError("--matryoshka_dims: expected sizes with commas between them, as in 384,128,64; got '",
                       text, "'");
    begin = end + 1;
  }
  return sizes;
}

// By the data where the flag is not given.
EmbeddingLossOptions loss_options(const EmbeddingFlags& flags, bool scored) {
  EmbeddingLossOptions options{
      .loss = scored ? EmbeddingLoss::kCosent : EmbeddingLoss::kMultipleNegativesRanking,
      .matryoshka_dims = sizes_in(flags.matryoshka_dims)};
  if (flags.loss) options.loss = static_cast<EmbeddingLoss>(number_of(*flags.loss, kEmbeddingLossNames));
  options.scale = flags.scale.value_or(options.scale);
  options.symmetric = flags.symmetric;
  if (options.symmetric && options.loss != EmbeddingLoss::kMultipleNegativesRanking)
    throw UsageError("--symmetric: only for --loss multiple_negatives_ranking");
  if (flags.scale && options.loss == EmbeddingLoss::kCosine)
    throw UsageError("--scale: the loss cosine compares cosines with scores as they are; leave it out");
  return options;
}

void require_shape(const TaskData& data, EmbeddingLoss loss) {
  for (const auto* part : {&data.sentences.train, &data.sentences.val}) {
    for (const SentenceExample& example : *part) {
      const auto refuse = [&](auto... why) {
        throw Error(data.source, ", line ", example.line, ": the loss ",
                    kEmbeddingLossNames[static_cast<std::size_t>(loss)], " ", why...);
      };
      if (takes_scores(loss) != example.score.has_value())
        refuse(takes_scores(loss) ? "needs sentence1, sentence2 and score" : "needs anchor and positive");
      if (loss == EmbeddingLoss::kCosine && std::abs(*example.score) > 1)
        refuse("needs scores from -1 to 1, as cosines are; found ", *example.score);
    }
  }
}

// As Sentence-Transformers 2 to 5 write them; version 6 reads them, too.
void write_sentence_files(const fs::path& directory, std::int64_t width) {
  const auto module = [](int number, const char* path, const std::string& type) {
    return json{{"idx", number},
                {"name", std::to_string(number)},
                {"path", path},
                {"type", "sentence_transformers.models." + type}};
  };
  write_json(directory / kModuleList,
             json::array({module(0, "", "Transformer"), module(1, kPoolingFolder, "Pooling")}));
  fs::create_directories(directory / kPoolingFolder);
  json pooling{{"word_embedding_dimension", width}, {"include_prompt", true}};
  for (const char* mode :
       {"cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"})
    pooling["pooling_mode_" + std::string(mode)] = mode == std::string("mean_tokens");
  write_json(directory / kPoolingFolder / "config.json", pooling);
  if (!fs::exists(directory / kSentenceSettings))
    write_json(
        directory / kSentenceSettings,
        {{"prompts", json::object()}, {"default_prompt_name", nullptr}, {"similarity_fn_name", "cosine"}});
  if (!fs::exists(directory / kTransformerSettings))
    write_json(directory / kTransformerSettings, {{"max_seq_length", nullptr}, {"do_lower_case", false}});
}

// A name of a parameter may have no dot.
std::string without_dots(std::string name) {
  std::ranges::replace(name, '.', '_');
  return name;
}

}  // namespace

EmbeddingTask::EmbeddingTask(const TrainFlags& flags, const CheckpointConfig& checkpoint,
                             const LoadedModel& loaded, c10::Device device)
    : flags_(flags), model_(loaded.model), config_(SentenceConfig::read(checkpoint.directory)) {
  if (config_.modules.empty())
    std::cerr
        << "note: " << checkpoint.directory.string()
        << " has no modules.json: the vector of a text is the mean of its tokens' states (mean pooling)\n";
  for (const SentenceConfig::Module& module : config_.modules) {
    if (module.type == "Dropout")
      throw Error(checkpoint.directory / kModuleList,
                  ": a Dropout after the transformer cannot be trained; take the module out of the list");
  }
  // Vectors are trained in full, whatever is kept of them later, and compared by their cosine.
  SentenceConfig whole = config_;
  whole.truncate_dim.reset();
  EmbedOptions options{.modules = {.device = device},
                       .prompt = "",
                       .max_length = static_cast<std::size_t>(flags.data.block_size)};
  if (config_.modules.empty()) options.modules.normalize = false;
  embedder_ = std::make_shared<const TextEmbedder>(
      model_, load_tokenizer(checkpoint.directory, checkpoint.json.get()), whole, options);
  for (std::size_t i = 0; i < embedder_->modules().size(); ++i) {
    const NamedTensors weights = embedder_->modules()[i]->weights();
    if (weights.empty()) continue;
    const auto holder = std::make_shared<torch::nn::Module>();
    for (const auto& [name, tensor] : weights) {
      at::Tensor weight = tensor;
      weight.set_data(weight.clone());  // a file's bytes are not to be written
      weight.requires_grad_(true);
      holder->register_parameter(without_dots(name), weight);
    }
    model_->register_module("sentence_module_" + std::to_string(i), holder);
  }
}

std::unique_ptr<Objective> EmbeddingTask::objective(const TaskData& data, const BatchPlan& plan) const {
  if (plan.ranks > 1)
    throw UsageError(
        "--task embedding trains in one process: an anchor is compared with the documents of its whole ",
        "batch; start it without --processes");
  const bool scored = data.sentences.val.front().score.has_value();
  EmbeddingOptions options{.loss = loss_options(flags_.embedding, scored),
                           .plan = plan,
                           .seed = static_cast<std::uint64_t>(flags_.compute.seed),
                           .mini_batch_size = flags_.embedding.mini_batch_size.value_or(0)};
  require_shape(data, options.loss.loss);
  if (!flags_.teacher.empty()) options.teacher = load_text_teacher(flags_);
  for (const auto* part : {&data.sentences.train, &data.sentences.val})
    for (const SentenceExample& example : *part)
      if (options.teacher && options.teacher->scores_pairs && example.texts.size() < 3)
        throw Error(data.source, ", line ", example.line,
                    ": the teacher is a cross-encoder, whose margins need a negative");
  const auto prompted = [&](const std::optional<std::string>& name) {
    return name ? embedder_->with_prompt(config_.prompt_named(*name)) : *embedder_;
  };
  return embedding_objective(
      model_, {prompted(flags_.embedding.query_prompt_name), prompted(flags_.embedding.document_prompt_name)},
      data.sentences, options);
}

void EmbeddingTask::save(const fs::path& directory) const {
  if (!fs::exists(directory / kModuleList)) write_sentence_files(directory, model_->config().hidden_size);
  std::size_t next = 0;
  for (const SentenceConfig::Module& module : config_.modules) {
    const NamedTensors weights = embedder_->modules()[next++]->weights();
    if (weights.empty()) continue;
    const fs::path folder = directory / module.directory.filename();
    write_safetensors(folder / "model.safetensors", weights);
    fs::remove(folder / "pytorch_model.bin");
  }
}

}  // namespace zoo
