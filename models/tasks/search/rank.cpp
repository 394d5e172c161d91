#include "models/tasks/search/rank.h"

#include <algorithm>
#include <cmath>

#include <ATen/ops/matmul.h>
#include <nlohmann/json.hpp>

#include "data/base/field_error.h"
#include "models/model.h"
#include "models/tasks/classify.h"
#include "models/tasks/look_texts.h"

namespace zoo {
namespace {

using nlohmann::json;

std::vector<RankedDocument> best_first(const std::vector<float>& scores, const RankRequest& asked) {
  std::vector<RankedDocument> ranked;
  for (std::size_t i = 0; i < scores.size(); ++i) ranked.push_back({i, scores[i]});
  std::ranges::stable_sort(ranked, std::greater<>(), &RankedDocument::score);
  if (asked.top_k && *asked.top_k < static_cast<std::int64_t>(ranked.size()))
    ranked.resize(static_cast<std::size_t>(*asked.top_k));
  return ranked;
}

// Version 6 has it in a file of its own, versions 4 and 5 in a section of config.json, those before in a key.
bool has_sigmoid(const CheckpointConfig& checkpoint, const SentenceConfig& config) {
  std::string name = config.activation, key = "activation_fn";
  const auto look = [&](const json& section, const char* named) {
    const auto found = section.is_object() ? section.find(named) : section.end();
    if (!name.empty() || !section.is_object() || found == section.end() || found->is_null()) return;
    name = found->is_string() ? found->get<std::string>() : found->dump();
    key = named;
  };
  look(checkpoint.json->value("sentence_transformers", json()), "activation_fn");
  look(*checkpoint.json, "sbert_ce_default_activation_function");
  if (name.empty() || name.ends_with(".Sigmoid")) return true;
  if (name.ends_with(".Identity")) return false;
  throw Error(checkpoint.directory, ": '", key, "' is '", name,
              "'; expected Sigmoid or Identity of torch.nn");
}

std::string prompt_of(const SentenceConfig& config, const std::optional<std::string>& name,
                      std::initializer_list<const char*> usual) {
  if (name) return config.prompt_named(*name);
  for (const char* each : usual) {
    const auto found = config.prompts.find(each);
    if (found != config.prompts.end() && !found->second.empty()) return found->second;
  }
  return "";
}

void require_whole(const TextEmbedder& embedder, const std::vector<std::string>& texts) {
  const std::size_t most = embedder.max_length().value_or(SIZE_MAX);
  for (const Encoding& encoding : embedder.encode(texts, /*truncates=*/false))
    if (encoding.size() > most)
      throw TokenCountError("texts", encoding.size(), static_cast<std::int64_t>(most));
}

}  // namespace

bool scores_pairs(const CheckpointConfig& checkpoint) {
  return checkpoint.head == Head::kSequenceClassification && checkpoint.config.num_labels == 1;
}

std::vector<RankedDocument> rank(const TextModel& model, const RankRequest& asked, const RunPass& run) {
  require_in(at_least(0), "top_k", asked.top_k);
  const ProblemType problem = model.model->config().problem_type;
  const bool regression = problem == ProblemType::kRegression || problem == ProblemType::kByLabels;
  if (!scores_pairs(model.checkpoint) || !regression)
    throw Error(model.checkpoint.directory,
                ": expected a cross-encoder, a regression with one label; it has ",
                model.checkpoint.config.num_labels, " labels and a ", name_of(model.head), " head");
  for (std::size_t i = 0; i < asked.documents.size(); ++i)
    if (asked.documents[i].empty()) throw Error("document ", i + 1, " is empty, so that it makes no pair");
  const SentenceConfig config = SentenceConfig::read_pair_settings(model.checkpoint.directory);
  const bool sigmoid = has_sigmoid(model.checkpoint, config) && !asked.raw_scores;
  const std::string& prompt =
      asked.prompt_name ? config.prompt_named(*asked.prompt_name) : config.default_prompt;
  const ClassifyRequest pairs{.texts = std::vector<std::string>(asked.documents.size(), prompt + asked.query),
                              .pairs = asked.documents,
                              .batch_size = asked.batch_size,
                              .truncates = asked.truncates};
  std::vector<float> scores;
  for (const TextLabels& labels : classify(model, pairs, run)) {
    const float logit = labels.values.front();
    scores.push_back(sigmoid ? 1 / (1 + std::exp(-logit)) : logit);
  }
  return best_first(scores, asked);
}

SearchEmbedders search_embedders(const TextEmbedder& embedder, const SentenceConfig& config,
                                 const std::optional<std::string>& query_prompt_name,
                                 const std::optional<std::string>& document_prompt_name) {
  if (config.similarity != "cosine" && config.similarity != "dot")
    throw Error(config.transformer, ": 'similarity_fn_name' is '", config.similarity,
                "', by which tzoo does not rank; expected cosine or dot");
  return {embedder.with_prompt(prompt_of(config, query_prompt_name, {"query"})),
          embedder.with_prompt(prompt_of(config, document_prompt_name, {"document", "passage", "corpus"})),
          config.similarity == "cosine"};
}

SearchEmbedders load_search_embedders(const ModelPath& model, const ComputeOptions& compute,
                                      const std::optional<std::string>& query_prompt_name,
                                      const std::optional<std::string>& document_prompt_name) {
  const SentenceConfig config = SentenceConfig::read(model);
  TextModel loaded = load_text_model(read_checkpoint_config(config.transformer), compute, Head::kBase);
  const EmbedOptions options{.modules = {.device = loaded.device}};
  const TextEmbedder embedder(std::move(loaded.model), std::move(loaded.tokenizer), config, options);
  return search_embedders(embedder, config, query_prompt_name, document_prompt_name);
}

at::Tensor SearchEmbedders::vectors(const TextEmbedder& embedder, const std::vector<std::string>& texts,
                                    std::int64_t batch_size, const RunPass& run) const {
  require_in(at_least(1), "batch_size", static_cast<double>(batch_size));
  const at::Tensor vectors = embedder.embed(texts, static_cast<std::size_t>(batch_size), run);
  return normalizes ? unit_vectors(vectors) : vectors;
}

std::vector<RankedDocument> rank(const SearchEmbedders& embedders, const RankRequest& asked,
                                 const RunPass& run) {
  require_in(at_least(0), "top_k", asked.top_k);
  const auto vectors_of = [&](const TextEmbedder& embedder, const std::vector<std::string>& texts) {
    if (!asked.truncates) require_whole(embedder, texts);
    return embedders.vectors(embedder, texts, asked.batch_size, run);
  };
  const at::Tensor query = vectors_of(embedders.queries, {asked.query})[0];
  std::vector<float> scores;
  const std::vector<std::string>& all = asked.documents;
  // Long lists in parts: their vectors take more memory than their scores.
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(asked.batch_size, 1024));
  for (std::size_t begin = 0; begin < all.size(); begin += size) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto count = static_cast<std::ptrdiff_t>(std::min(size, all.size() - begin));
    const at::Tensor found =
        at::matmul(vectors_of(embedders.documents, {first, first + count}), query).contiguous();
    scores.insert(scores.end(), found.const_data_ptr<float>(), found.const_data_ptr<float>() + found.numel());
  }
  return best_first(scores, asked);
}

}  // namespace zoo
