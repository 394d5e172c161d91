#pragma once

#include "tokenizer/jinja/lexer.h"
#include "tokenizer/jinja/syntax.h"

namespace zoo::chat {

/// Parses a template. Throws SyntaxFault for anything outside the subset.
Statements parse(std::string_view source, TagSpace space);

}  // namespace zoo::chat
