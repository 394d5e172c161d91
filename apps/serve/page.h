#pragma once

#include <string>
#include <vector>

namespace zoo {

/// The page of GET /: what the server has and what it answers.
std::string front_page(const std::vector<std::string>& models);

}  // namespace zoo
