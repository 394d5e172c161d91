#include "apps/serve/request_watch.h"

#include <string>

#include "apps/serve/api_error.h"

namespace zoo {

double RequestWatch::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

void RequestWatch::check() const {
  if (client_left_ && client_left_()) throw ClientLeft();
  if (stopping_) throw ApiError(503, "the server stops");
  if (seconds() > most_seconds_)
    throw ApiError(
        503, "the request took longer than " + std::to_string(static_cast<int>(most_seconds_)) + " seconds");
}

}  // namespace zoo
