#include "apps/hub/http.h"
#include "data/base/error.h"

namespace zoo {

HttpAnswer http_get(const HttpRequest& request, const HttpSink&) {
  throw Error("cannot download ", request.url,
              ": this tzoo was built without libcurl; install Debian's libcurl4-openssl-dev and build again");
}

}  // namespace zoo
