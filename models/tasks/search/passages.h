#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

namespace zoo {

/// Receives a passage and the line, counted from 1, on which it begins; false ends the reading.
using TakePassage = std::function<bool(std::int64_t line, std::string_view text)>;
using ReadPassages = std::function<void(const std::filesystem::path& file, const TakePassage& take)>;

/// The paragraphs of a UTF-8 text: lines between blank ones, without white space at both ends. One of more
/// than `most_bytes` is cut into about equal parts, at a line end, else at a space, else between characters.
void each_passage(std::string_view text, const TakePassage& take, std::size_t most_bytes = 1000);

/// Those of a file. Throws Error naming it if it cannot be read, is not UTF-8 or has a NUL byte.
void read_passages(const std::filesystem::path& file, const TakePassage& take);

}  // namespace zoo
