#pragma once

/// @file
/// Use:
///
///     zoo::RowText text(session);
///     zoo::generate(*model, {ids}, options, [&](const zoo::NewToken& token) {
///       std::cout << text.push(token.id) << std::flush;
///       return true;  // false ends the row
///     });

#include <string>

#include "models/tasks/generate_session.h"
#include "tokenizer/stream_decoder.h"

namespace zoo {

/// The text of a row that is being written: whole characters, up to the first stop string. The session must
/// outlive it.
class RowText {
 public:
  explicit RowText(const GenerateSession& session)
      : ids_(session), stop_(session.stop), decoder_(*session.tokenizer) {}

  /// The text of a token of the prompt, in which stop strings have no effect.
  std::string push_given(TokenId id) { return ids_.contains(id) ? decoder_.push(id) : ""; }
  /// The text that is certain after this token; may be empty.
  std::string push(TokenId id);
  /// The text that was held back.
  std::string finish();
  /// Number of bytes that are held back.
  std::size_t held() const { return held_.size(); }

 private:
  std::string release(std::string text);

  TextIds ids_;
  const StopStrings& stop_;
  StreamDecoder decoder_;
  std::string held_;  // may be the beginning of a stop string
  bool stopped_ = false;
};

}  // namespace zoo
