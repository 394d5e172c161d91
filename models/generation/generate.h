#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "models/generation/decoding_session.h"
#include "models/generation/history_filters.h"
#include "models/generation/sampler.h"
#include "models/generation/token_constraint.h"
#include "models/model.h"

namespace zoo {

/// When a beam search has enough, in Hugging Face's words early_stopping. kLikely (false): no running beam's
/// present score is better than the worst of the finished; kFull (true): num_beams have finished; kNever: no
/// running beam can become better.
enum class EarlyStopping { kLikely, kFull, kNever };

/// Beam search: the num_beams likeliest beginnings go on, and of what has ended the best is kept.
struct BeamOptions {
  std::int64_t num_beams = 1;  // 1: no beam search
  /// A finished row's score is its log-probability divided by its number of new tokens to the power of this.
  double length_penalty = 1.0;
  EarlyStopping early_stopping = EarlyStopping::kLikely;
  std::int64_t num_return_sequences = 1;  // the best of the beams, at most num_beams
  /// Diverse beams (Vijayakumar et al., 2016): the beams are divided into groups that search one after the
  /// other, and a token loses diversity_penalty for each beam of the groups before that has just taken it.
  std::int64_t num_beam_groups = 1;
  double diversity_penalty = 0.0;
};

/// Contrastive search (Su et al., 2022, "A Contrastive Framework for Neural Text Generation", equation 5): of
/// the top_k likeliest tokens the one with the largest (1 - penalty_alpha) p - penalty_alpha s, where s is
/// the largest cosine between its hidden state, behind the final norm, and that of a token before it that the
/// model sees. The decoder's own tokens alone, of an encoder-decoder.
struct ContrastiveOptions {
  double penalty_alpha = 0.0;  // in [0, 1]; 0: no contrastive search
  std::int64_t top_k = 4;      // candidates, each of which is read; at least 2
};

struct GenerationOptions {
  std::int64_t max_new_tokens = 200;         // for each row, at least 1
  SamplingOptions sampling;                  // of beams and contrastive search there is none
  TokenIds eos_token_ids;                    // a row ends with the first of them
  std::int64_t decoder_start_token_id = -1;  // what an encoder-decoder begins with; -1: what its config says
  HistoryOptions history;
  BeamOptions beams;
  ContrastiveOptions contrastive;                     // not with beams
  std::shared_ptr<const TokenConstraint> constraint;  // what every row must keep to; null: nothing
  bool log_probabilities = false;                     // whether the result and the callback have them
  /// Speculative sampling (Leviathan et al., 2023): a smaller model of the same vocabulary drafts
  /// draft_tokens tokens, which this one reads at once; the distribution stays as it is without, and greedy
  /// ids do too. Rows are made one after the other. Null: none; not with beams or contrastive search. It must
  /// outlive the call.
  DecodingModel* draft = nullptr;
  std::int64_t draft_tokens = 4;
  /// Asked with a row's new tokens after each of them; true ends the row behind it.
  std::function<bool(const TokenIds& new_ids)> row_ends;
  /// Asked before each step; true ends the generation, and the rows are as far as they are.
  std::function<bool()> interrupted;
};

struct GenerationResult {
  /// New tokens only, a list for each prompt, or num_return_sequences of them, the best first; an end token
  /// closes its row.
  std::vector<TokenIds> ids;
  /// The model's own log-probability of each of them, before any filter; if they were asked for.
  std::vector<std::vector<double>> log_probabilities;
  std::vector<double> scores;              // of beam search, one a row
  std::int64_t drafted = 0, accepted = 0;  // tokens of the draft model, and those of them that were kept
  std::int64_t prompt_count = 0;           // tokens that the prompts hold
  double seconds_prefill = 0;              // reading the prompts and choosing the first token
  double seconds_decode = 0;               // the tokens after it

  std::int64_t token_count() const;
  double tokens_per_second() const;  // of both times; 0 where no time was taken
};

/// A token that has just been chosen.
struct NewToken {
  std::size_t row = 0;  // number of its row in the result
  std::int64_t id = 0;
  double log_probability = 0;  // if it was asked for
};

/// Called for every new token at once; false ends the generation of all rows. Beams are known at the end
/// only, and so are their tokens.
using TokenCallback = std::function<bool(const NewToken& token)>;

/// Continues each prompt with a decoder, whatever its weights are stored as. Rows of different lengths are
/// continued as each would be alone, and a row that has ended leaves the others; equal prompts are read once,
/// and so is a longer beginning that prompts of a decoder share. An encoder-decoder reads the prompts with
/// its encoder, and its decoder begins with decoder_start_token_id.
///
/// A model with learned or sinusoidal positions sees at most max_positions tokens. When a row grows beyond
/// that, the last half of max_positions of its tokens is kept and read anew: the context slides in jumps,
/// where nanoGPT moves it by one token and reads all of it for every token, and Hugging Face fails.
///
/// Greedy ids and those of beams are Hugging Face's. Of a checkpoint's generation_config.json nothing is
/// known here: who wants its end tokens reads them (generation_config.h), and every other value of it is for
/// the caller to say.
///
/// Throws Error for an empty prompt, an id outside the vocabulary (naming both), a prompt longer than
/// max_positions (naming both lengths), options out of range, a start token that nobody names, and where the
/// filters and the constraint leave a row no token.
GenerationResult generate(DecodingModel& model, const std::vector<TokenIds>& prompts,
                          const GenerationOptions& options, const TokenCallback& on_token = {});

/// The same with a model of modules, which is in evaluation mode meanwhile.
GenerationResult generate(Model& model, const std::vector<TokenIds>& prompts,
                          const GenerationOptions& options, const TokenCallback& on_token = {});

}  // namespace zoo
