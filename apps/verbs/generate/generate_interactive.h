#pragma once

#include "apps/verbs/generate/generate_session.h"

namespace zoo {

/// `tzoo generate --interactive`: a decoder continues the whole conversation with each line of standard
/// input; an encoder-decoder answers each line alone. Ctrl-C stops a reply, the end of input ends the
/// session. An invalid line gives an error on standard error, and the session continues.
void run_interactive(DecodingModel& model, const GenerateSession& session, GenerationOptions options,
                     bool color);

}  // namespace zoo
