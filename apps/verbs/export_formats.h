#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

#include "data/base/model_path.h"
#include "models/script/verify.h"

// The formats of tzoo export that no library writes: each in the source file of its name.
namespace zoo {

/// The result of an export; a format sets what it has.
struct Exported {
  std::int64_t bytes = 0, tensors = 0;
  std::string type;                      // of the weights
  std::vector<std::string> left_out;     // tensors of the source that belong to other heads
  std::vector<std::string> not_carried;  // files of the model's directory
  std::optional<VerifyReport> report;
  std::optional<std::int64_t> equal_tensors;
  std::optional<std::int64_t> calibration_tokens;  // of the text by which the weights were rounded
};

/// Writes the checkpoint of `source` as a Hugging Face directory, atomically: weights under the names of
/// Hugging Face's class, in `dtype` or their own type (float32 if the types differ), and ModelFiles. Replaces
/// an existing directory `target` as check_export_target() allows. Throws Error naming what prevents this.
Exported export_huggingface(const ModelPath& source, const std::filesystem::path& target,
                            std::optional<c10::ScalarType> dtype);

/// The number of tensors in `target`. Each must equal the source's tensor converted to its type, bit for bit,
/// or be a zero bias that the source lacks; the directory must load. Throws Error naming the first tensor
/// that differs, is missing or is not in the source.
std::int64_t verify_huggingface(const ModelPath& source, const std::filesystem::path& target);

/// Writes a directory of packed weights (PackedParts), else as export_huggingface(). int4 weights are rounded
/// by the text `calibration` (calibration_text()), if it is not empty.
Exported export_packed(const ModelPath& source, const std::filesystem::path& target,
                       const std::string& weights, const std::string& calibration);

/// The first bytes of a written page.
inline constexpr const char* kHtmlBegin = "<!DOCTYPE html><!-- tzoo export -->";

struct HtmlPage {
  std::size_t tensors = 0;
  std::string card;  // JSON, for gallery_page()
};

/// Writes the model of `source` with its tokenizer.json as one HTML file (apps/page_engine), atomically, in
/// float32, or for the weights "int8" with the rows of matrices, except positions, rounded by their largest
/// weight / 127. Throws Error naming the field, head or part of the tokenizer that the engine does not know.
HtmlPage export_html(const ModelPath& source, const std::filesystem::path& target,
                     const std::string& weights);

/// The front page of pages that lie in the same folder, by their cards.
std::string gallery_page(const std::vector<std::string>& cards);
/// True for what gallery_page() gives; what its editor has saved is another text.
bool is_gallery_page(std::string_view text);

}  // namespace zoo
