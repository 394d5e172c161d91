#pragma once

#include "apps/command/arguments.h"
#include "apps/serve/endpoints/endpoints.h"
#include "apps/serve/web/access_rules.h"

namespace zoo {

/// `tzoo serve`: loads the models, answers requests until a signal stops it. Returns the exit code.
int run_serve(const Arguments& arguments);

/// The reply to a request that must not pass, from its head alone.
std::optional<WebReply> refuse_request(ServerState& state, const AccessRules& rules,
                                       const WebRequest& request);

/// Answers another one: finds the endpoint of its path, turns errors into OpenAI's, counts.
WebReply answer_request(ServerState& state, const AccessRules& rules, const WebRequest& request);

}  // namespace zoo
