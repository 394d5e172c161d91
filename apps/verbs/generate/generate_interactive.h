#pragma once

#include <functional>
#include <string>

#include "models/tasks/generate_session.h"

namespace zoo {

/// Reads lines of standard input, edited where it is a terminal, until it ends or `answer` returns false. An
/// Error of `answer` is printed, and the next line is read.
void answer_lines(const std::function<bool(const std::string&)>& answer);

/// Generates one row and streams it to standard output; timings go to standard error. Ctrl-C ends the row.
GenerationResult stream_reply(DecodingModel& model, const GenerateSession& session, GenerationOptions options,
                              const TokenIds& ids, bool color);

/// `tzoo generate --interactive`: a decoder continues the whole conversation with each line of standard
/// input; an encoder-decoder answers each line alone. Ctrl-C stops a reply, the end of input ends the
/// session. An invalid line gives an error on standard error, and the session continues.
void run_interactive(DecodingModel& model, const GenerateSession& session, GenerationOptions options,
                     bool color);

}  // namespace zoo
