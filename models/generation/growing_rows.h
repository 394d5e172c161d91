#pragma once

#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/generation/decoding_session.h"
#include "models/generation/shared_prefixes.h"

namespace zoo {

/// Token sequences that a model continues, and the session that reads them.
class GrowingRows {
 public:
  struct Options {
    std::int64_t max_new_tokens = 0;
    std::int64_t decoder_start_token_id = -1;  // -1: what the model's configuration says
    bool hidden_states = false;                // that new_states() are wanted, of the last new token too
  };

  /// A row for each prompt: the prompt itself or, of an encoder-decoder, the start token behind which the
  /// prompt is answered. Equal prompts are read once, and so is what others have in common at their
  /// beginning. Throws Error as generate() does.
  GrowingRows(DecodingModel& model, const std::vector<TokenIds>& prompts, const Options& options);

  std::size_t size() const { return tokens_.size(); }

  /// All tokens of a row, those included that the context has slid over.
  const TokenIds& tokens(std::size_t row) const { return tokens_[row]; }

  void append(std::size_t row, std::int64_t id) { tokens_[row].push_back(id); }

  /// How many tokens of a row the model sees: its last ones.
  std::size_t seen(std::size_t row) const { return tokens_[row].size() - starts_[row]; }

  /// Reads what each row has got since the last call: logits [B, V] of its next token.
  at::Tensor next_logits();

  /// The hidden states [T, C] of those tokens of a row that the last next_logits() read: all that the model
  /// sees at the beginning and where the context has slid. Valid until the next call but for this one.
  const at::Tensor& new_states(std::size_t row) const { return new_states_.at(row); }

  /// Row b becomes what row rows[b] was.
  void select(const std::vector<std::int64_t>& rows);

 private:
  at::Tensor read_first();
  at::Tensor read_beginnings(const std::vector<TokenIds>& different);
  at::Tensor read(const std::vector<TokenIds>& unread);

  std::vector<TokenIds> tokens_;
  std::vector<std::size_t> starts_;        // where what the model sees of a row begins
  std::vector<std::int64_t> first_equal_;  // for each row the one of the session that reads its prompt
  std::vector<SharedPrefix> beginnings_;   // of the different prompts; empty where they share nothing
  std::int64_t limit_;
  std::unique_ptr<DecodingSession> session_;
  bool has_read_ = false, hidden_states_;
  std::vector<at::Tensor> new_states_;
};

/// What each row begins with: the prompt itself or, of an encoder-decoder, the start token. Throws Error as
/// generate() does for prompts and a start token that cannot be.
std::vector<TokenIds> first_tokens(const TransformerConfig& config, const std::vector<TokenIds>& prompts,
                                   std::int64_t decoder_start_token_id);

/// The most tokens that a model can see: max_positions, of positions that come from a table.
std::int64_t context_limit(const TransformerConfig& config);

}  // namespace zoo
