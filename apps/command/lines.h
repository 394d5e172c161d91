#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <string>

namespace zoo {

/// Calls `use(line, number)` for each line; numbers count from 1, only '\n' ends a line and is not part of
/// it, and a last line without it counts. What std::cout holds is written whenever no further input is there
/// yet, so that a program that sends a line and waits for the answer gets it. An Error from `use` is thrown
/// on with the line's number before its message; a failed read is an Error.
void for_each_line(std::istream& input,
                   const std::function<void(const std::string& line, std::int64_t number)>& use);

}  // namespace zoo
