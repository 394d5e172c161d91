#pragma once

#include <memory>
#include <string>

#include "apps/serve/request_fields.h"
#include "apps/serve/served_model.h"

namespace zoo {

/// How a request wants its text to be written.
struct WritingRequest {
  std::shared_ptr<GenerateSession> session;  // with the request's stop strings
  std::shared_ptr<BatchRequest> batch = std::make_shared<BatchRequest>();
  bool stream = false, include_usage = false;
};

/// Reads the fields that /v1/completions and /v1/chat/completions share: how tokens are chosen and where a
/// text ends. A field that the request does not have is the checkpoint's default, then OpenAI's. The caller
/// sets the prompts and calls set_length(). Throws ApiError naming the field.
WritingRequest read_writing_request(RequestFields& fields, const WritingModel& model,
                                    const GenerateSession& session);

/// Sets the number of new tokens: `given` by the field `name`, or what the context leaves; at most `most`
/// unless that is 0. Throws ApiError if it does not fit, as OpenAI does: context_length_exceeded.
void set_length(WritingRequest& request, const WritingModel& model, std::optional<std::int64_t> given,
                const std::string& name, std::int64_t most);

}  // namespace zoo
