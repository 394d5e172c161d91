#include <cstring>

#include <nlohmann/json.hpp>

#include "apps/serve/api_error.h"
#include "apps/serve/endpoints/endpoints.h"
#include "data/base/base64.h"
#include "data/base/error.h"
#include "data/base/json_text.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMostInputs = 2048;

std::vector<std::string> inputs_of(RequestFields& fields) {
  const ordered_json* given = fields.get("input");
  if (given == nullptr) RequestFields::refuse("input", "is missing");
  if (given->is_array() && !given->empty() && !given->front().is_string())
    RequestFields::refuse("input", "must be a text or a list of texts; ids are not supported here");
  std::vector<std::string> texts = fields.texts("input", kMostInputs);
  if (texts.empty()) RequestFields::refuse("input", "has no text");
  for (const std::string& text : texts)
    if (text.empty()) RequestFields::refuse("input", "has an empty text");
  return texts;
}

ordered_json vector_json(const float* numbers, std::size_t count, bool as_base64) {
  if (!as_base64) return std::vector<float>(numbers, numbers + count);
  std::string bytes(count * sizeof(float), '\0');  // little-endian, as the processors of this program are
  std::memcpy(bytes.data(), numbers, bytes.size());
  return encode_base64(bytes);
}

}  // namespace

WebReply answer_embeddings(ServerState& state, const WebRequest& request) {
  RequestFields fields(request.body);
  ServedModel& served = state.model_of(fields);
  if (!served.embedder)
    throw ApiError(400, "'" + served.name + "' has a " + served.head + " head and makes no embeddings",
                   "model", "model_not_supported");
  const std::vector<std::string> texts = inputs_of(fields);
  const std::string format = fields.text("encoding_format").value_or("float");
  if (format != "float" && format != "base64")
    RequestFields::refuse("encoding_format", "must be float or base64");
  if (const auto size = fields.integer("dimensions", 1, 1'000'000); size)
    RequestFields::refuse("dimensions", "is not supported here", "unsupported_parameter");
  fields.ignore({"user", "model"});
  fields.refuse_others();

  at::Tensor vectors;
  std::size_t tokens = 0;
  for (const std::string& text : texts)
    tokens += served.tokenizer->encode(text, EncodeOptions{.with_offsets = false}).size();
  state.thread.run([&] { vectors = served.embedder->embed(texts).contiguous(); });
  const auto width = static_cast<std::size_t>(vectors.size(1));
  ordered_json data = ordered_json::array();
  for (std::size_t i = 0; i < texts.size(); ++i)
    data.push_back(
        {{"object", "embedding"},
         {"index", i},
         {"embedding", vector_json(vectors.const_data_ptr<float>() + i * width, width, format == "base64")}});
  return {.body = json_text(ordered_json{{"object", "list"},
                                         {"data", std::move(data)},
                                         {"model", served.name},
                                         {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}})};
}

WebReply answer_tokenize(ServerState& state, const WebRequest& request) {
  RequestFields fields(request.body);
  ServedModel& served = state.model_of(fields);
  const std::optional<std::string> text = fields.text("content");
  if (!text) RequestFields::refuse("content", "is missing");
  const bool special = fields.flag("add_special").value_or(true);
  const bool pieces = fields.flag("with_pieces").value_or(false);
  fields.refuse_others();
  const TokenIds ids = special ? served.tokenizer->encode(*text, EncodeOptions{.with_offsets = false}).ids
                               : served.tokenizer->encode(*text);
  ordered_json tokens = ordered_json::array();
  for (const TokenId id : ids) {
    if (pieces) {
      tokens.push_back({{"id", id}, {"piece", replace_invalid_utf8(served.tokenizer->token_text(id))}});
    } else {
      tokens.push_back(id);
    }
  }
  return {.body = json_text(ordered_json{{"tokens", std::move(tokens)}})};
}

WebReply answer_detokenize(ServerState& state, const WebRequest& request) {
  RequestFields fields(request.body);
  ServedModel& served = state.model_of(fields);
  const auto given = fields.ids("tokens", served.tokenizer->vocab_size());
  if (!given) RequestFields::refuse("tokens", "must be a list of ids");
  const bool keep = fields.flag("keep_special").value_or(false);
  fields.refuse_others();
  const TokenIds ids(given->begin(), given->end());
  const std::string text =
      keep ? served.tokenizer->decode_with_special_tokens(ids) : served.tokenizer->decode(ids);
  return {.body = json_text(ordered_json{{"content", replace_invalid_utf8(text)}})};
}

}  // namespace zoo
