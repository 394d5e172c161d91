#include <nlohmann/json.hpp>

#include "apps/serve/endpoints/endpoints.h"
#include "data/base/json.h"
#include "tokenizer/text/utf8.h"

namespace zoo {

using nlohmann::ordered_json;

WebReply answer_tokenize(ApiCall& call) {
  RequestFields& fields = call.fields;
  const Tokenizer& tokenizer = *call.served.tokenizer;
  const std::optional<std::string> text = fields.text("content");
  if (!text) fields.refuse_missing("content");
  const bool special = fields.flag("add_special").value_or(true);
  const bool pieces = fields.flag("with_pieces").value_or(false);
  fields.refuse_others();
  const TokenIds ids =
      special ? tokenizer.encode(*text, EncodeOptions{.with_offsets = false}).ids : tokenizer.encode(*text);
  ordered_json tokens = ordered_json::array();
  for (const TokenId id : ids) {
    if (pieces) {
      tokens.push_back({{"id", id}, {"piece", replace_invalid_utf8(tokenizer.token_text(id))}});
    } else {
      tokens.push_back(id);
    }
  }
  return {.body = json_text(ordered_json{{"tokens", std::move(tokens)}})};
}

WebReply answer_detokenize(ApiCall& call) {
  RequestFields& fields = call.fields;
  const Tokenizer& tokenizer = *call.served.tokenizer;
  const auto given = fields.ids("tokens", tokenizer.vocab_size());
  if (!given) fields.refuse_missing("tokens", "must be a list of ids");
  const bool keep = fields.flag("keep_special").value_or(false);
  fields.refuse_others();
  const TokenIds ids(given->begin(), given->end());
  const std::string text = keep ? tokenizer.decode_with_special_tokens(ids) : tokenizer.decode(ids);
  return {.body = json_text(ordered_json{{"content", replace_invalid_utf8(text)}})};
}

}  // namespace zoo
