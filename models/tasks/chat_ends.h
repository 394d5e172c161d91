#pragma once

#include "models/tasks/generate_session.h"
#include "tokenizer/chat/chat_format.h"

namespace zoo {

/// An answer ends at generation_config.json's end tokens, the tokenizer's and the template's: adds the latter
/// two.
void add_end_tokens(GenerateSession& session, const ChatFormat& format);

}  // namespace zoo
