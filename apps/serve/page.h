#pragma once

#include <string>

namespace zoo {

/// The page of GET /, which asks the server for everything that it shows.
const std::string& front_page();

/// Its Content-Security-Policy: it runs its own script alone and reaches this server alone.
const std::string& front_page_policy();

}  // namespace zoo
