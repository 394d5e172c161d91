#include "apps/serve/web/access_rules.h"

#include <algorithm>

#include <arpa/inet.h>

#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

bool is_address(const std::string& host) {
  in6_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

// The time does not tell how much of the key is right.
bool same_secret(const std::string& given, const std::string& secret) {
  unsigned different = given.size() == secret.size() ? 0U : 1U;
  for (std::size_t i = 0; i < given.size(); ++i)
    different |= static_cast<unsigned>(static_cast<unsigned char>(given[i]) ^
                                       static_cast<unsigned char>(secret[i % secret.size()]));
  return different == 0;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

// Paths that need no key: they say nothing of the models.
bool is_open(const std::string& path) { return path == "/health" || path == "/"; }

bool is_json(const std::string& type) {
  return lower(type.substr(0, type.find_first_of("; "))) == "application/json";
}

// A POST's head: of a body that a page of somebody else can send without being asked, and of unknown size.
std::optional<ApiError> body_refusal(const WebRequest& request, std::size_t most) {
  if (request.header("Transfer-Encoding")) return ApiError(411, "the request needs a Content-Length");
  if (request.method != "POST") {
    if (request.header("Content-Length").value_or("0") != "0")
      return ApiError(400, "a " + request.method + " request has no body");
    return std::nullopt;
  }
  const std::optional<std::string> length = request.header("Content-Length");
  if (!length) return ApiError(411, "the request needs a Content-Length");
  if (length->empty() || length->find_first_not_of("0123456789") != std::string::npos)
    return ApiError(400, "the Content-Length is no number");
  if (length->size() > 15 || std::stoull(*length) > most)
    return ApiError(413, "the body is larger than " + std::to_string(most) + " bytes");
  if (lower(request.header("Content-Encoding").value_or("identity")) != "identity")
    return ApiError(415, "the body must not be compressed");
  if (!is_json(request.header("Content-Type").value_or("")))
    return ApiError(415, "the Content-Type must be application/json");
  return std::nullopt;
}

}  // namespace

bool is_loopback(const std::string& host) {
  in_addr address{};
  if (::inet_pton(AF_INET, host.c_str(), &address) == 1) return (ntohl(address.s_addr) >> 24) == 127;
  return host == "localhost" || host == "::1";
}

std::optional<std::string> host_name(const std::string& text) {
  const bool bracketed = text.starts_with('[');
  const std::size_t end = bracketed ? text.find(']') : text.find(':');
  if (bracketed && end == std::string::npos) return std::nullopt;
  const std::string port = end == std::string::npos ? "" : text.substr(end + (bracketed ? 1 : 0));
  const bool good_port = port.empty() || (port[0] == ':' && port.size() <= 6 &&
                                          port.find_first_not_of("0123456789", 1) == std::string::npos);
  const std::string name = text.substr(bracketed ? 1 : 0, bracketed ? end - 1 : end);
  if (name.empty() || !good_port) return std::nullopt;
  return lower(name);
}

bool AccessRules::allows_origin(const std::string& origin) const {
  return std::ranges::count(allowed_origins, origin) > 0;
}

std::optional<ApiError> AccessRules::refusal(const WebRequest& request) const {
  // A proxy before this server may read such a head in another way, and where the next request begins
  // (request smuggling; RFC 9112, sections 5.1 and 6.3).
  if (!request.ambiguity.empty()) return ApiError(400, request.ambiguity);
  const std::string given = request.header("Host").value_or("");
  const std::optional<std::string> name = host_name(given);
  const bool known = name && (*name == "localhost" || *name == lower(host) || is_address(*name) ||
                              std::ranges::count(allowed_hosts, *name) > 0);
  if (!known)
    return ApiError(
        403, "the Host header '" + excerpt(given, 100) + "' is not this server's; --allow_host names more");
  const std::optional<std::string> origin = request.header("Origin");
  if (origin && *origin != "http://" + given && !allows_origin(*origin))
    return ApiError(
        403, "a page of '" + excerpt(*origin, 100) + "' may not use this server; --allow_origin permits it");
  if (request.method == "OPTIONS" && origin) return body_refusal(request, body_bytes);
  const bool deletes = request.method == "DELETE" && request.path.starts_with("/v1/responses/");
  if (request.method != "GET" && request.method != "HEAD" && request.method != "POST" && !deletes)
    return ApiError(405, "the method " + request.method + " is not supported");
  std::string bearer = request.header("Authorization").value_or("");
  if (lower(bearer.substr(0, 7)) == "bearer ") bearer.replace(0, 7, "Bearer ");
  if (!api_key.empty() && !is_open(request.path) && !same_secret(bearer, "Bearer " + api_key) &&
      !same_secret(request.header("X-Api-Key").value_or(""), api_key))
    return ApiError(401, "the request needs the API key: 'Authorization: Bearer KEY' or 'X-Api-Key: KEY'", "",
                    "invalid_api_key");
  for (const char* others : {"/v1/audio/", "/v1/images/"})  // whose bodies are often no JSON
    if (request.path.starts_with(others))
      return ApiError(404, "there are no models of sounds or images here, only of texts", "", "not_found");
  return body_refusal(request, body_bytes);
}

}  // namespace zoo
