#include <algorithm>
#include <sstream>

#include <nlohmann/json.hpp>

#include "apps/serve/api_error.h"
#include "apps/serve/endpoints/endpoints.h"
#include "data/base/json.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kInputItems = "/input_items";

// The fields in "?name=value&…".
RequestFields fields_of(const std::string& query) {
  const auto fields = std::make_shared<ordered_json>(ordered_json::object());
  std::istringstream pairs(query.substr(std::min<std::size_t>(1, query.size())));
  for (std::string pair; std::getline(pairs, pair, '&');) {
    const std::size_t end = std::min(pair.find('='), pair.size());
    const std::string value = pair.substr(std::min(end + 1, pair.size()));
    const ordered_json number = parse_ordered_json(value);
    (*fields)[pair.substr(0, end)] = number.is_number() ? number : ordered_json(value);
  }
  return RequestFields(fields);
}

// The part of a list of items that a query asks for.
ordered_json list_of(ordered_json items, const std::string& query) {
  RequestFields fields = fields_of(query);
  const std::string order = fields.text("order").value_or("desc");
  if (order == "desc") std::reverse(items.begin(), items.end());
  else if (order != "asc") RequestFields::refuse("order", "must be asc or desc");
  const auto limit = static_cast<std::size_t>(fields.integer("limit", 1, 100).value_or(20));
  if (const auto after = fields.text("after")) {
    const auto place =
        std::ranges::find_if(items, [&](const ordered_json& item) { return item["id"] == *after; });
    if (place == items.end()) RequestFields::refuse("after", "names no item of the list");
    items.erase(items.begin(), place + 1);
  }
  fields.refuse_others();
  const bool has_more = items.size() > limit;
  if (has_more) items.erase(items.begin() + static_cast<std::ptrdiff_t>(limit), items.end());
  ordered_json list{{"object", "list"}, {"data", items}, {"has_more", has_more}};
  list["first_id"] = items.empty() ? ordered_json() : items.front()["id"];
  list["last_id"] = items.empty() ? ordered_json() : items.back()["id"];
  return list;
}

}  // namespace

WebReply answer_kept(ServerState& state, const WebRequest& request, const std::string& path) {
  RequestFields query = fields_of(request.query);
  if (const ordered_json* stream = query.get("stream"); stream != nullptr && *stream == "true")
    RequestFields::refuse("stream", "must be false: an answer that is kept is whole");
  const bool lists_items = request.method != "DELETE" && path.ends_with(kInputItems);
  const std::string id = lists_items ? path.substr(0, path.size() - kInputItems.size()) : path;
  const auto kept = state.conversations.get(id);
  if (!kept) throw ApiError(404, "no response '" + excerpt(id, 100) + "' is kept here", "", "not_found");
  if (lists_items) return {.body = json_text(list_of(parse_ordered_json(kept->input), request.query))};
  if (request.method != "DELETE") return {.body = kept->answer};
  state.conversations.forget(id);
  return {.body = json_text(ordered_json{{"id", id}, {"object", "response"}, {"deleted", true}})};
}

}  // namespace zoo
