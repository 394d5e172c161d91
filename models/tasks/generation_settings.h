#pragma once

/// @file
/// Use:
///
///     zoo::GenerationSettings settings{.temperature = 0.7};
///     const auto given = [](std::string_view field) { return field == "temperature"; };
///     const auto config = zoo::read_generation_config(directory, checkpoint.json);
///     zoo::apply_generation_config(settings, config, given);
///     const zoo::GenerationOptions options = settings.generation_options();

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "data/base/field_error.h"
#include "models/generation/generate.h"
#include "models/generation/generation_config.h"

namespace zoo {

/// How a text is to be written, by the names of the command line's flags: what a user or a request has said
/// and what generation_config.json says for the rest.
struct GenerationSettings {
  GenerationOptions options{.sampling = {.top_k = 200}};
  std::optional<double> temperature;       // none: 0.8; 0 for beam search
  std::optional<std::int64_t> max_length;  // tokens in all, in place of options.max_new_tokens
  std::vector<std::string> stop;           // texts before which a row ends

  /// options, completed by the temperature. Ends and texts are the caller's to add.
  GenerationOptions generation_options() const;
  /// New tokens that max_length leaves after `longest_prompt` tokens (an encoder-decoder's start token is
  /// one), or options.max_new_tokens. Throws FieldError if none are left.
  std::int64_t new_token_limit(std::int64_t longest_prompt) const;
};

/// Sets the fields that are not `given` to what the checkpoint's generation_config.json says, as transformers
/// does. A given field chooses between sampling and beam search: the file's keys for the other are then left
/// out. Throws Error naming file and key for a value of the wrong type and for a key that changes the ids but
/// is not supported.
void apply_generation_config(GenerationSettings& settings, const GenerationConfig& config,
                             const std::function<bool(std::string_view)>& given);

/// Parses '[1, 2]' or '1', and '[[1, 2], [3]]'. Throws UnfitField naming the field.
TokenIds parse_ids(const std::string& field, const std::string& text);
std::vector<TokenIds> parse_id_rows(const std::string& field, const std::string& text);

/// A number of GenerationSettings, stated once for flags, fields of HTTP and keys of generation_config.json.
struct GenerationField {
  std::string_view name;
  std::variant<double*, std::int64_t*, std::optional<double>*, std::optional<std::int64_t>*> member;
  FieldRange range;
  std::string_view help;  // names other fields in quotes
};

/// The field of this name in these settings. Throws Error if there is none.
GenerationField field_of(GenerationSettings& settings, std::string_view name);

}  // namespace zoo
