#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <memory>

#include <curl/curl.h>

#include "apps/hub/http.h"
#include "data/base/error.h"

namespace zoo {
namespace {

constexpr long kConnectSeconds = 20, kSilentSeconds = 60, kMostRedirects = 5;

constexpr std::array kCuts{CURLE_PARTIAL_FILE, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_OPERATION_TIMEDOUT};

struct Transfer {
  const HttpSink& sink;
  CURL* curl;
  HttpAnswer answer;
  std::int64_t offset = 0;  // of the next piece; set by the headers of each answer
  bool refused = false;     // by the sink
};

bool is_success(long status) { return status == 200 || status == 206; }

long status_of(CURL* curl) {
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  return status;
}

std::int64_t first_number(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// One header line of an answer, also of those that redirect.
std::size_t read_header(const char* data, std::size_t size, std::size_t count, void* context) {
  Transfer& transfer = *static_cast<Transfer*>(context);
  const std::string_view line(data, size * count);
  const std::size_t colon = line.find(':');
  if (line.starts_with("HTTP/")) transfer.offset = 0;
  if (colon == std::string_view::npos) return line.size();
  std::string name(line.substr(0, colon));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  std::string_view value = line.substr(colon + 1);
  while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  while (!value.empty() && std::isspace(static_cast<unsigned char>(value.back()))) value.remove_suffix(1);
  if (name == "retry-after") transfer.answer.retry_after = first_number(value);
  if (name == "x-error-message") transfer.answer.fault = value;
  // "bytes 1000-1999/2000"; a complete answer begins at 0.
  if (name == "content-range" && value.starts_with("bytes ")) transfer.offset = first_number(value.substr(6));
  return line.size();
}

std::size_t read_body(const char* data, std::size_t size, std::size_t count, void* context) {
  Transfer& transfer = *static_cast<Transfer*>(context);
  const std::string_view piece(data, size * count);
  if (!is_success(status_of(transfer.curl))) return piece.size();
  transfer.refused = !transfer.sink(transfer.offset, piece);
  if (transfer.refused) return 0;
  transfer.offset += static_cast<std::int64_t>(piece.size());
  return piece.size();
}

}  // namespace

HttpAnswer http_get(const HttpRequest& request, const HttpSink& sink) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> owner(curl_easy_init(), curl_easy_cleanup);
  CURL* curl = owner.get();
  if (ready != CURLE_OK || curl == nullptr) throw Error("libcurl cannot be started");
  Transfer transfer{.sink = sink, .curl = curl};
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "tzoo");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, kMostRedirects);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, kSilentSeconds);
  // A redirect must not leave HTTPS.
  const char* protocols = request.url.starts_with("https:") ? "https" : "http,https";
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, protocols);
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, protocols);
  if (!request.token.empty()) {
    curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, request.token.c_str());
  }
  if (request.offset > 0) {
    const std::string range = std::to_string(request.offset) + "-";  // which libcurl copies
    curl_easy_setopt(curl, CURLOPT_RANGE, range.c_str());
  }
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, read_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, read_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  const CURLcode code = curl_easy_perform(curl);
  if (code != CURLE_OK && !transfer.refused)
    return {.fault = curl_easy_strerror(code), .is_cut = std::ranges::find(kCuts, code) != kCuts.end()};
  transfer.answer.status = status_of(curl);
  return transfer.answer;
}

}  // namespace zoo
