#include "apps/serve/web/web_server.h"
#include "data/base/error.h"

namespace zoo {

struct WebServer::Impl {};

WebServer::WebServer(const WebLimits&, Gate, Handler) {
  throw Error(
      "tzoo serve: this tzoo was built without cpp-httplib; install Debian's libcpp-httplib-dev and build ",
      "again");
}

WebServer::~WebServer() = default;

int WebServer::bind(const std::string&, int) { return 0; }

void WebServer::run() {}

void WebServer::stop() {}

std::size_t WebServer::connections() const { return 0; }

}  // namespace zoo
