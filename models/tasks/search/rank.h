#pragma once

/// @file
/// Use:
///
///     const zoo::TextModel model = zoo::load_text_model(zoo::read_checkpoint_config("ms-marco-MiniLM"), {});
///     const zoo::RankRequest asked{.query = "Who made the light?", .documents = {"God said", "the earth"}};
///     for (const zoo::RankedDocument& each : zoo::rank(model, asked))
///       std::cout << each.score << " " << asked.documents[each.index] << "\n";

#include <optional>
#include <string>
#include <vector>

#include "models/tasks/text_embedder.h"
#include "models/tasks/text_model.h"

namespace zoo {

struct RankRequest {
  std::string query;
  std::vector<std::string> documents;
  std::optional<std::int64_t> top_k;  // documents to return; none: all
  std::int64_t batch_size = 32;
  std::optional<std::string> prompt_name;  // of a cross-encoder, before the query; none: its default
  bool raw_scores = false;                 // of a cross-encoder: without the activation
  bool truncates = true;                   // texts that are too long; else they are an error
};

struct RankedDocument {
  std::size_t index = 0;  // in the request
  float score = 0.0F;
};

/// True for a CrossEncoder of Sentence-Transformers: a classifier of pairs with one label, which says how
/// well a text answers.
bool scores_pairs(const CheckpointConfig& checkpoint);

/// Documents, best first; of equal scores the first in the request. The score of a cross-encoder (Nogueira
/// and Cho, 2019, "Passage re-ranking with BERT") is its logit after the activation that its directory names,
/// sigmoid without one, as CrossEncoder.predict() gives it; a piece is a batch. Throws Error for a model that
/// does not score pairs, an activation that is neither sigmoid nor identity, and an empty document;
/// FieldError for a negative top_k and a batch_size below 1; TokenCountError for a text that is too long and
/// not truncated.
std::vector<RankedDocument> rank(const TextModel& model, const RankRequest& asked,
                                 const RunPass& run = run_at_once);

/// One embedding model with the prompts of queries and of documents.
struct SearchEmbedders {
  TextEmbedder queries, documents;
  bool normalizes = true;  // cosines, else dot products

  /// Vectors [N, D] whose products are the similarities, by `queries` or `documents`.
  at::Tensor vectors(const TextEmbedder& embedder, const std::vector<std::string>& texts,
                     std::int64_t batch_size = 32, const RunPass& run = run_at_once) const;
};

/// The prompts of these names; by default "query", and the first of "document", "passage" and "corpus" that
/// has a text. Throws Error for another name, and if the similarity is neither cosine nor dot.
SearchEmbedders search_embedders(const TextEmbedder& embedder, const SentenceConfig& config,
                                 const std::optional<std::string>& query_prompt_name = std::nullopt,
                                 const std::optional<std::string>& document_prompt_name = std::nullopt);

/// The same for a Sentence-Transformers directory or a plain checkpoint.
SearchEmbedders load_search_embedders(const ModelPath& model, const ComputeOptions& compute = {},
                                      const std::optional<std::string>& query_prompt_name = std::nullopt,
                                      const std::optional<std::string>& document_prompt_name = std::nullopt);

/// rank() with vectors: the score is the similarity of query and document; a piece is a thousand documents.
std::vector<RankedDocument> rank(const SearchEmbedders& embedders, const RankRequest& asked,
                                 const RunPass& run = run_at_once);

}  // namespace zoo
