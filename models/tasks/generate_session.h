#pragma once

/// @file
/// Use:
///
///     const auto use = zoo::TokenizerUse::kNeeded;
///     const auto session = zoo::open_generate_session(checkpoint, generation_config, /*stop=*/{}, use);
///     zoo::complete(options, session);
///     const auto result = zoo::generate(*model, {session.tokenizer->encode("Once")}, options);
///     std::cout << zoo::text_of_row(result.ids[0], session) << "\n";

#include <memory>
#include <string>
#include <vector>

#include "models/checkpoint/checkpoint.h"
#include "models/generation/generate.h"
#include "models/generation/generation_config.h"
#include "tokenizer/chat/chat_format.h"
#include "tokenizer/constraint/stop_strings.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/tokenizer.h"

namespace zoo {

/// Everything besides the weights that continues texts, or ids.
struct GenerateSession {
  CheckpointConfig checkpoint;
  GenerationDefaults defaults;
  std::shared_ptr<const Tokenizer> tokenizer;  // null if the directory has none
  StopStrings stop;
  // Of each token, where calls of tools are read: special tokens that mark them have text, too. Else null.
  std::shared_ptr<const std::vector<std::string>> pieces;

  std::int64_t vocab_size() const { return checkpoint.config.vocab_size; }
  bool has_encoder() const { return checkpoint.config.shape == Shape::kEncoderDecoder; }
};

/// Generation from ids works even if the zoo cannot read the model's tokenizer.
enum class TokenizerUse { kNeeded, kIfReadable };

/// Reads everything except the weights. Without a tokenizer in the directory the session has none; one that
/// cannot be read is an Error, or with kIfReadable a warning. Throws Error naming the directory.
GenerateSession open_generate_session(const CheckpointConfig& checkpoint, const GenerationConfig& config,
                                      const std::vector<std::string>& stop, TokenizerUse use);

/// Sets what the options leave to the checkpoint: end tokens and an encoder-decoder's start token; and
/// options.row_ends, so that a row also ends at a stop string of the session, which must outlive the options.
void complete(GenerationOptions& options, const GenerateSession& session);

/// Ids with text: no end tokens and none beyond the vocabulary. The session has a tokenizer and outlives
/// this.
class TextIds {
 public:
  explicit TextIds(const GenerateSession& session)
      : ends_(session.defaults.eos_token_ids), tokenizer_(*session.tokenizer) {}

  bool contains(TokenId id) const;
  /// Decodes the ids from index `first` on, skipping those without text.
  std::string text_of(const TokenIds& ids, std::size_t first = 0) const;
  /// What the ids add to a text, with the space at its beginning that some tokenizers drop.
  std::string text_after_others(const TokenIds& ids, std::size_t first = 0) const;

 private:
  TokenIds those_with_text(const TokenIds& ids, std::size_t first) const;

  TokenIds ends_;
  const Tokenizer& tokenizer_;
};

/// The text of a row of new ids, up to the first stop string.
std::string text_of_row(const TokenIds& ids, const GenerateSession& session);

/// Adds the tokenizer's and the template's end tokens, at which an answer ends, too.
void add_end_tokens(GenerateSession& session, const ChatFormat& format);

/// The text of a row that is being written: whole characters, up to the first stop string. The session must
/// outlive it.
class RowText {
 public:
  explicit RowText(const GenerateSession& session)
      : session_(session), ids_(session), decoder_(*session.tokenizer) {}

  /// The text of a token of the prompt, in which stop strings have no effect.
  std::string push_given(TokenId id) {
    started_ = started_ || ids_.contains(id);
    return ids_.contains(id) ? decoder_.push(id) : "";
  }
  /// The text that is certain after this token; may be empty.
  std::string push(TokenId id);
  /// The text that was held back.
  std::string finish();
  /// The rest of the text from the stop string on that has ended it; empty: none has.
  std::string_view stop() const { return stopped_ ? std::string_view(held_) : std::string_view(); }
  std::size_t held() const { return held_.size() - lost_; }

 private:
  std::string release(const std::string& text);
  std::string take(std::size_t count);  // of held_, without the space that the text has lost

  const GenerateSession& session_;
  TextIds ids_;
  StreamDecoder decoder_;
  std::string held_;      // may be the beginning of a stop string
  std::size_t lost_ = 0;  // bytes at the beginning of held_
  bool started_ = false, stopped_ = false;
};

}  // namespace zoo
