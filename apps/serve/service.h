#pragma once

#include "apps/command/arguments.h"
#include "apps/serve/endpoints/endpoints.h"
#include "apps/serve/web/access_rules.h"

namespace zoo {

/// `tzoo serve`: loads the models, answers requests until a signal stops it. Returns the exit code.
int run_serve(const Arguments& arguments);

/// Answers requests: finds the endpoint of a path, turns errors into OpenAI's, counts.
class Service {
 public:
  Service(ServerState& state, const AccessRules& rules) : state_(state), rules_(rules) {}

  /// The reply to a request that must not pass, from its head alone.
  std::optional<WebReply> refuse(const WebRequest& request);
  WebReply answer(const WebRequest& request);

 private:
  WebReply route(const WebRequest& request);
  WebReply list_models() const;
  WebReply show_metrics() const;
  WebReply with_origin(const WebRequest& request, WebReply reply) const;

  ServerState& state_;
  const AccessRules& rules_;
};

}  // namespace zoo
