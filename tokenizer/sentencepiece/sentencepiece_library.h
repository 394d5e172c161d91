#pragma once

#include <string>

#include <sentencepiece_processor.h>

namespace zoo {

/// Turns off the library's log on stderr: every failure is an Error here.
void silence_sentencepiece();

/// The message of a status without the library's source line and condition.
std::string cause_of(const sentencepiece::util::Status& status);

}  // namespace zoo
