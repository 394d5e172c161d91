#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

namespace zoo {

/// There is no memory for the tokens that DecodingSession::read() gives to a row. Nothing has been read, and
/// the other rows can go on.
struct RowMemoryError : std::runtime_error {
  RowMemoryError(std::size_t number, const std::string& message) : std::runtime_error(message), row(number) {}
  std::size_t row;
};

}  // namespace zoo
