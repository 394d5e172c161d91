#pragma once

#include <string_view>

#include <sentencepiece_processor.h>

namespace zoo {

/// Turns off the library's log on stderr: every failure is an Error here.
void silence_sentencepiece();

/// Throws Error "WHAT: …", with the library's message, for a status that is not good.
void require_ok(const sentencepiece::util::Status& status, std::string_view what);

}  // namespace zoo
