#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "models/checkpoint/model_path.h"

namespace zoo {

/// The first bytes of a written page.
inline constexpr const char* kHtmlBegin = "<!DOCTYPE html><!-- tzoo export -->";

/// Writes the model of `source` with its tokenizer.json as one HTML file (apps/page_engine), atomically. The
/// rows of matrices are float32, or for the weights "int8" rounded, each by its largest weight / 127; vectors
/// and tables of positions are float32. Throws Error naming the field of the configuration, the head or the
/// part of the tokenizer that the page's engine does not know. Returns the number of tensors.
std::int64_t export_html(const ModelPath& source, const std::filesystem::path& target,
                         const std::string& weights);

}  // namespace zoo
