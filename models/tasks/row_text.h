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

  /// The text that is certain after this token; may be empty.
  std::string push(TokenId id);
  /// The text that was held back.
  std::string finish();

 private:
  std::string release(std::string text);

  TextIds ids_;
  const StopStrings& stop_;
  StreamDecoder decoder_;
  std::string held_;  // may be the beginning of a stop string
  bool stopped_ = false;
};

}  // namespace zoo
