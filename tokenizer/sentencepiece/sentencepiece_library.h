#pragma once

#include <string>

#include <sentencepiece_processor.h>

namespace zoo {

/// Keeps the library's own log off stderr: every failure is an Error here.
void silence_sentencepiece();

/// What a status says, without the library's source line and condition.
std::string cause_of(const sentencepiece::util::Status& status);

}  // namespace zoo
