#pragma once

/// @file
/// Use:
///
///     const zoo::LoadedModel loaded = zoo::load_model("runs/kjv/final");
///     const auto tokenizer = zoo::load_tokenizer("runs/kjv/final");
///     const auto result = zoo::generate(*loaded.model, {tokenizer->encode("In the beginning")},
///                                       {.max_new_tokens = 50, .sampling = {.top_k = 40}});
///     std::cout << tokenizer->decode(result.ids[0]) << "\n";

#include <functional>
#include <memory>
#include <vector>

#include "models/generation/decoding_session.h"
#include "models/generation/logits_filters.h"
#include "models/generation/sampler.h"
#include "models/generation/token_constraint.h"
#include "models/model_io.h"

namespace zoo {

/// Stopping rule of beam search (Hugging Face: early_stopping). kLikely (false): stops when no running beam's
/// present score is better than the worst finished one; kFull (true): when num_beams have finished; kNever:
/// when no running beam can become better.
enum class EarlyStopping { kLikely, kFull, kNever };

/// Beam search: continues the num_beams most likely hypotheses and keeps the best finished ones.
struct BeamOptions {
  static constexpr std::int64_t kMostBeams = 1024;
  std::int64_t num_beams = 1;  // 1: no beam search
  /// A finished beam's score is its log-probability divided by its number of new tokens to this power.
  double length_penalty = 1.0;
  EarlyStopping early_stopping = EarlyStopping::kLikely;
  std::int64_t num_return_sequences = 1;  // best beams, at most num_beams
  /// Beams that sample (Hugging Face: do_sample): the candidates of a step are drawn, none twice, in
  /// proportion to the exponential of their scores, after the filters of SamplingOptions.
  bool sample = false;
  /// Makes the scores of a step log-probabilities again after the filters (Hugging Face's name). Greedy
  /// choice and sampling do not depend on it.
  bool renormalize_logits = false;
};

struct GenerationOptions {
  std::int64_t max_new_tokens = 200;         // for each row, at least 1
  std::int64_t context = 0;                  // tokens that a decoder sees; 0: as many as its positions allow
  SamplingOptions sampling;                  // beams use it only with `sample`
  TokenIds eos_token_ids;                    // any of them ends a row
  std::int64_t decoder_start_token_id = -1;  // first token of an encoder-decoder; -1: as in its config
  HistoryOptions history;
  BeamOptions beams;
  std::shared_ptr<const TokenConstraint> constraint;  // constraint on every row; null: none
  bool log_probabilities = false;                     // include them in the result and the callback
  /// Speculative sampling (Leviathan et al., 2023): a smaller model with the same vocabulary drafts
  /// draft_tokens tokens, which this model reads at once; the distribution and greedy ids stay the same. Rows
  /// are generated one by one. Null: none; not with beams. It must outlive the call.
  DecodingModel* draft = nullptr;
  std::int64_t draft_tokens = 4;
  /// Without a draft model: drafts up to so many tokens that followed the last tokens earlier in the prompt
  /// or the new text (Saxena, 2023: prompt lookup; Hugging Face's name). Fewer while they are rejected. 0:
  /// off.
  std::int64_t prompt_lookup_num_tokens = 0;
  /// Leaves the keys and values of the prompt and the new tokens with the model, for a later call with this
  /// option, which reads only what follows the common beginning (the next turn of a conversation). The result
  /// is the same. Packed decoders only; others read all.
  bool keep_cache = false;
  /// Called with a row's new tokens after each of them; true ends the row there.
  std::function<bool(const TokenIds& new_ids)> row_ends;
  /// Called before each step; true ends the generation with the rows so far.
  std::function<bool()> interrupted;
};

struct GenerationResult {
  /// New tokens: a list per prompt, or num_return_sequences of them, best first; an end token closes its row.
  std::vector<TokenIds> ids;
  /// The model's log-probability of each token, before any filter; only if asked for.
  std::vector<std::vector<double>> log_probabilities;
  std::vector<double> scores;              // beam search only, one per row
  std::int64_t drafted = 0, accepted = 0;  // drafted tokens, and how many were accepted
  std::int64_t prompt_count = 0;           // tokens in the prompts, equal ones once
  double seconds_prefill = 0;              // reading the prompts and choosing the first token
  double seconds_decode = 0;               // the tokens after it

  std::int64_t token_count() const;
  double tokens_per_second() const;  // over both times; 0 if no time was measured
};

struct NewToken {
  std::size_t row = 0;  // index of its row in the result
  TokenId id = 0;
  double log_probability = 0;  // if asked for
};

/// Called for every new token at once, by beam search at the end; false ends the generation of all rows.
using TokenCallback = std::function<bool(const NewToken& token)>;

/// Continues each prompt with a decoder, in whatever format its weights are stored. A row's result does not
/// depend on the lengths of the others, and an ended row leaves the batch. Equal prompts, and longer prefixes
/// that prompts of a decoder share, are read once. An encoder-decoder reads the prompts with its encoder, and
/// its decoder starts with decoder_start_token_id.
///
/// A model with learned or sinusoidal positions sees at most max_positions tokens, and no model more than
/// `context`. When a row grows beyond that, the last half is kept and read again: the context slides in
/// jumps. nanoGPT slides by one token and reads the complete context for each; Hugging Face fails.
///
/// Greedy ids and those of beam search equal Hugging Face's. generate() does not read generation_config.json:
/// callers read its EOS ids (generation_config.h) and set all other options themselves.
///
/// Throws Error for an empty prompt, an id outside the vocabulary (naming both), a prompt longer than the
/// context (naming both lengths), options out of range, a missing start token, and if the filters and the
/// constraint allow a row no token.
GenerationResult generate(DecodingModel& model, const std::vector<TokenIds>& prompts,
                          const GenerationOptions& options, const TokenCallback& on_token = {});

/// generate() in steps, for a caller with other work between them:
///
///     zoo::GenerationRun run(decoder, {ids}, options);
///     while (run.step()) other_work();
///     const zoo::GenerationResult result = run.finish();
class GenerationRun {
 public:
  /// `model` must outlive the run. Throws Error as generate() does.
  GenerationRun(DecodingModel& model, std::vector<TokenIds> prompts, GenerationOptions options,
                TokenCallback on_token = {});
  ~GenerationRun();

  /// Adds a token to each row that has not ended (with drafts: some to one row). False, without a step, once
  /// none is left or options.interrupted or the callback has ended it. Throws Error as generate().
  bool step();

  /// The result; called once, after the last step.
  GenerationResult finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The same for a model of modules, in evaluation mode during the call.
GenerationResult generate(Model& model, const std::vector<TokenIds>& prompts,
                          const GenerationOptions& options, const TokenCallback& on_token = {});

}  // namespace zoo
