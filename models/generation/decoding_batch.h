#pragma once

/// @file
/// Use:
///
///     zoo::DecodingBatch batch(decoder, {ids}, {.max_new_tokens = 10});
///     const at::Tensor logits = batch.next_logits();  // [B, V]
///     batch.append(/*row=*/0, logits.argmax(-1).item<zoo::TokenId>());

#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/generation/generate.h"

namespace zoo {

struct SharedPrefix {
  std::vector<std::size_t> rows;  // row numbers
  std::size_t length = 0;         // of the prefix; 0 for a row that shares none
};

/// Groups rows, which must be distinct and non-empty, so that reading each group's prefix once saves the most
/// tokens. Idea: in sorted order, rows with a common prefix are neighbours; a recursion divides them where
/// that saves more. Ignores savings of about a pass. Each row has a token after its prefix.
std::vector<SharedPrefix> shared_prefixes(const std::vector<TokenIds>& rows);

/// Token sequences that a model continues, and the session that reads them.
class DecodingBatch {
 public:
  /// Makes a row per prompt: the prompt itself or, for an encoder-decoder, the start token of the answer.
  /// Equal prompts, and prefixes that prompts share, are read once. Reads max_new_tokens, context,
  /// decoder_start_token_id and, unless there are beams, keep_cache. Throws Error as generate() does.
  DecodingBatch(DecodingModel& model, const std::vector<TokenIds>& prompts, const GenerationOptions& options);

  std::size_t size() const { return tokens_.size(); }

  /// All tokens of a row, including those that the context has slid past.
  const TokenIds& tokens(std::size_t row) const { return tokens_[row]; }

  /// The same as histories, of which the first tokens of the rows were given.
  RowHistories histories() const;

  void append(std::size_t row, TokenId id) { tokens_[row].push_back(id); }

  /// Reads each row's tokens since the last call; returns logits [B, V] of the next token.
  at::Tensor next_logits();

  /// The rows as next_logits() left them, for a caller that reads on by itself.
  DecodingSession& session() { return *session_; }

  /// Replaces row b by row rows[b].
  void select(const std::vector<std::int64_t>& rows);

 private:
  at::Tensor read_first();
  void read_beginnings(const std::vector<TokenIds>& different);

  std::vector<TokenIds> tokens_;
  std::vector<std::size_t> given_;         // number of first tokens of each row
  std::vector<std::size_t> starts_;        // start of the visible part of each row
  std::vector<std::int64_t> first_equal_;  // for each row, the session's row that reads its prompt
  std::vector<SharedPrefix> beginnings_;   // of distinct prompts; empty if they share none
  std::int64_t limit_, longrope_limit_;
  std::unique_ptr<DecodingSession> session_;
  bool has_read_ = false, keeps_ = false;
};

/// First tokens of each row: the prompt itself or, for an encoder-decoder, the start token. Throws Error as
/// generate() does for invalid prompts and start tokens.
std::vector<TokenIds> first_tokens(const TransformerConfig& config, const std::vector<TokenIds>& prompts,
                                   std::int64_t decoder_start_token_id, std::int64_t context = 0);

/// Most tokens that a model sees: max_positions of a table of positions, and `context`, if that is not 0.
std::int64_t context_limit(const TransformerConfig& config, std::int64_t context = 0);

}  // namespace zoo
