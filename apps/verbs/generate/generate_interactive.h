#pragma once

#include "apps/verbs/generate/generate_session.h"

namespace zoo {

/// `tzoo generate --interactive`: each line of standard input is continued, behind all that was said before;
/// an encoder-decoder answers each line by itself. Ctrl-C stops a reply, the end of the input ends. A line
/// that cannot be read is an error line on standard error, and the session goes on.
void run_interactive(DecodingModel& model, const GenerateSession& session, GenerationOptions options,
                     bool color);

}  // namespace zoo
