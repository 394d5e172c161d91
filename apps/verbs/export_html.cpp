#include <algorithm>

#include <ATen/core/grad_mode.h>
#include <nlohmann/json.hpp>

#include "apps/hub/hub_cache.h"
#include "apps/plots/embedded_page.h"
#include "apps/verbs/export_formats.h"
#include "data/base/atomic_file.h"
#include "data/base/base64.h"
#include "data/base/error.h"
#include "data/base/lines.h"
#include "models/checkpoint/checkpoint.h"
#include "models/generation/generation_config.h"
#include "models/layers/embeddings.h"
#include "models/model.h"
#include "models/tasks/encoding_batch.h"
#include "tokenizer/files/tokenizer_json.h"
#include "tokenizer/text/split_patterns.h"
#include "tokenizer/text/utf8.h"
#include "tokenizer/tokenizer.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// What the engine computes: heads; fields of the configuration with any value (those that change no numbers
// of an inference too) or one of some values, of which the first word counts; parts of a tokenizer.json.
const Json& known() {
  static const Json parsed = Json::parse(embedded::kPageEngine.style);
  return parsed;
}
bool has(const Json& list, std::string_view word) { return std::ranges::find(list, word) != list.end(); }

// All fields that the engine does not know must be at their defaults.
Json known_config(const TransformerConfig& config) {
  Json json;
  const auto plain = fields_of(TransformerConfig());
  for (const auto& [name, text] : fields_of(config)) {
    const auto at_default = std::ranges::find(plain, name, [](const auto& field) { return field.first; });
    const auto values = known()["values"].find(name);
    const bool fits = values != known()["values"].end()
                          ? has(*values, text.substr(0, text.find(' ')))
                          : has(known()["fields"], name) || text == at_default->second;
    if (!fits) throw Error("--format html: the page's engine has no ", name, " = ", text);
    json[std::string(name)] = text;
  }
  return json;
}

void check_part(const std::string& part, const nlohmann::json& section) {
  if (section.is_null()) return;
  const std::string type = section.value("type", "");
  if (!has(known()["tokenizer"][part], type))
    throw Error("--format html: the page has no ", part, " ", type.empty() ? "without a type" : type);
  for (const char* list : {"normalizers", "pretokenizers", "decoders"})
    for (const auto& each : section.value(list, nlohmann::json::array())) check_part(part, each);
  const std::string text = section.value(nlohmann::json::json_pointer("/pattern/Regex"), "");
  if (!text.empty() && !has(known()["regular_expressions"], text) && !split_pattern_of(text))
    throw Error("--format html: the page does not know the regular expression ", text, " of the ", part);
}

// Texts and what tzoo makes of them, which the page compares with its own when it opens. None for a
// vocabulary without their characters.
Json probes_of(const Tokenizer& tokenizer) {
  TokenIds first;
  for (TokenId id = 0; id < 300 && id < tokenizer.vocab_size(); ++id) first.push_back(id);
  std::vector<std::string> texts = known()["probes"];
  texts.push_back(replace_invalid_utf8(tokenizer.decode(first)));
  Json probes = Json::array();
  for (const std::string& text : texts) {
    try {
      probes.push_back({{"text", text}, {"ids", tokenizer.encode(text, EncodeOptions()).ids}});
    } catch (const Error&) {
    }
  }
  return probes;
}

// Appends a tensor's bytes; int8 rows have their scales after them, at a multiple of 4 bytes.
Json added(const std::string& name, const at::Tensor& tensor, bool quantizes, std::string& bytes) {
  const at::Tensor floats = tensor.detach().to(at::kFloat).contiguous();
  const auto append = [&](const at::Tensor& part) {
    bytes.append(static_cast<const char*>(part.const_data_ptr()), part.nbytes());
    bytes.resize((bytes.size() + 3) / 4 * 4);
  };
  const bool rounds = quantizes && floats.dim() == 2 && name.find("position") == std::string::npos &&
                      name.find("token_type") == std::string::npos;
  Json entry{{"name", name}, {"shape", floats.sizes().vec()}, {"at", bytes.size()}};
  entry["type"] = rounds ? "int8" : "float32";
  const at::Tensor scales = rounds ? floats.abs().amax(1) / 127.0 : at::Tensor();
  append(rounds ? (floats / scales.clamp_min(1e-30).unsqueeze(1)).round().to(at::kChar) : floats);
  if (rounds) append(scales);
  return entry;
}

// A browser's text holds less than 2^29 characters: V8's.
constexpr std::size_t kPieceBytes = std::size_t{3} << 26;

std::string weight_elements(std::string_view weights) {
  std::string elements;
  for (std::size_t at = 0; at < weights.size(); at += kPieceBytes)
    elements += "<script type=\"text/plain\" class=\"model-weights\">" +
                encode_base64(weights.substr(at, kPieceBytes)) + "</script>";
  return elements;
}

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

// The head of the page gets the model, and a policy by which it reaches no network.
std::string page_with(const Json& header, const std::string& weights) {
  using embedded::replaced;
  std::string head = replaced(embedded::kPageEngine.html, "/*SCRIPT*/", embedded::kPageEngine.script);
  head = replaced(head, "/*HEADER*/", embedded::inside_script(text_of(header)));
  head = replaced(head, "/*WEIGHTS*/", weight_elements(weights));
  const std::string page = replaced(embedded::whole_page(embedded::kFilePage), "<!DOCTYPE html>", kHtmlBegin);
  return replaced(page, "<meta charset=\"utf-8\">", head);
}

}  // namespace

HtmlPage export_html(const ModelPath& source, const fs::path& target, const std::string& weights) {
  const CheckpointConfig checkpoint = read_checkpoint_config(source);
  if (!has(known()["heads"], name_of(checkpoint.head)))
    throw Error("--format html: the page has no ", name_of(checkpoint.head), " head");
  Json header{{"model", model_name(source)}, {"head", name_of(checkpoint.head)}};
  header["family"] = checkpoint.family->model_type;
  header["config"] = known_config(checkpoint.config);
  const fs::path& own = !source.adapter.empty() && has_tokenizer(source.adapter) ? source.adapter : source;
  const fs::path file = own / "tokenizer.json";
  if (!fs::exists(file))
    throw Error("--format html: ", own, " has no tokenizer.json, from which the page encodes texts");
  const auto tokenizer = load_tokenizer(source, checkpoint.json.get());
  require_fit(*tokenizer, checkpoint.config, checkpoint.directory);
  const nlohmann::json parts =
      applied_tokenizer_json(file, TokenizerSettings::read(own, checkpoint.json.get()));
  for (const auto& [part, types] : known()["tokenizer"].items())
    check_part(part, parts.value(part, nlohmann::json()));
  header["tokenizer"] = parts;
  header["tokenizer"]["kind"] = tokenizer->kind();
  if (!tokenizer->limits().gives_segments)
    for (Json& piece : header["tokenizer"]["templates"]["pair"]) piece["type"] = 0;
  header["probes"] = probes_of(*tokenizer);
  if (const auto mask = tokenizer->special_id(SpecialToken::mask))
    header.update({{"mask_id", *mask}, {"mask_token", tokenizer->token_text(*mask)}});
  header["decoder_start"] =
      decoder_start(defaults_of(read_generation_config(source, checkpoint.json)), checkpoint.config);
  if (checkpoint.config.shape == Shape::kEncoderDecoder && header["decoder_start"] < 0)
    throw Error("--format html: ", source, " has no decoder_start_token_id");
  const at::NoGradGuard no_grad;
  const LoadedModel loaded = load_model(checkpoint);
  if (!loaded.model->parts().embeddings)
    throw Error("--format html: the page's engine has no ", checkpoint.family->model_type, " models");
  header["head_activation"] = name_of(loaded.model->parts().head.activation);
  header["parameters"] = loaded.model->parameter_count();
  if (checkpoint.config.takes_positions()) header["context"] = checkpoint.config.max_length();
  std::string bytes;
  for (const auto& entry : loaded.model->named_parameters())
    header["tensors"].push_back(added(entry.key(), entry.value(), weights == "int8", bytes));
  for (const auto& entry : loaded.model->named_buffers())
    if (!entry.key().ends_with("sinusoids"))  // which the page computes
      header["tensors"].push_back(added(entry.key(), entry.value(), false, bytes));
  write_file(target, page_with(header, bytes));
  // The card's picture is of the first numbers of the first tokens' embeddings.
  constexpr std::int64_t kSide = 24;
  const at::Tensor& table = loaded.model->parts().embeddings->token->weight;
  std::string picture;
  Json card{{"file", target.filename().string()}, {"header", {{"tensors", Json::array()}}}};
  card["header"]["tensors"].push_back(
      added("embeddings.token.weight", table.slice(0, 0, kSide).slice(1, 0, kSide), false, picture));
  for (const char* key : {"model", "family", "config", "parameters"}) card["header"][key] = header[key];
  card["weights"] = encode_base64(picture);
  return {header["tensors"].size(), text_of(card)};
}

constexpr std::string_view kNoPages = "\"pages\": []";

std::string gallery_page(const std::vector<std::string>& cards) {
  const std::string pages = "\"pages\": [" + embedded::inside_script(joined(cards)) + "]";
  return embedded::replaced(embedded::kGalleryPage.html, kNoPages, pages);
}

bool is_gallery_page(std::string_view text) {
  const std::string_view page = embedded::kGalleryPage.html;
  return text.starts_with(page.substr(0, page.find(kNoPages)));
}

}  // namespace zoo
