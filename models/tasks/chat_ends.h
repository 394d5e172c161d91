#pragma once

/// @file
/// Use:
///
///     const zoo::ChatFormat format = zoo::ChatFormat::read(directory);
///     zoo::add_end_tokens(session, format);
///     const zoo::TokenIds ids = session.tokenizer->encode(format.prompt(request));

#include "models/tasks/generate_session.h"
#include "tokenizer/chat/chat_format.h"

namespace zoo {

/// An answer ends at generation_config.json's end tokens, the tokenizer's and the template's: adds the latter
/// two.
void add_end_tokens(GenerateSession& session, const ChatFormat& format);

}  // namespace zoo
