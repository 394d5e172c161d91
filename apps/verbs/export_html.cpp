#include "apps/verbs/export_html.h"

#include <map>
#include <sstream>

#include <ATen/core/grad_mode.h>
#include <nlohmann/json.hpp>

#include "apps/hub/find_model.h"
#include "apps/plots/embedded_page.h"
#include "data/base/atomic_file.h"
#include "data/base/base64.h"
#include "data/base/error.h"
#include "data/base/json_file.h"
#include "models/checkpoint/checkpoint.h"
#include "models/generation/generation_config.h"
#include "models/tasks/encoding_batch.h"
#include "tokenizer/text/split_patterns.h"
#include "tokenizer/text/utf8.h"
#include "tokenizer/tokenizer.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

bool has_word(std::string_view words, std::string_view word) {
  return (" " + std::string(words) + " ").find(" " + std::string(word) + " ") != std::string::npos;
}

// The fields that the engine computes, or that change no numbers of an inference. All others must be at
// their defaults.
constexpr const char* kFields =
    "shape vocab_size hidden_size num_layers num_decoder_layers num_heads num_kv_heads head_dim "
    "intermediate_size max_positions type_vocab_size embedding_size num_labels pad_token_id eos_token_id "
    "label_names problem_type sentence_pooling trains_padding decoder_start_token_id shifted_labels norm "
    "norm_placement first_attention_norm sublayer_order layer_norm_eps position position_count "
    "position_offset sinusoid_order rope_theta rope_scaling rotary_dim window_rope_theta rotary_layers "
    "relative_buckets relative_max_distance bucket_tables activation sliding_window window_layers "
    "query_key_norm attention_scale attention_softcap cross_attention sharing tie_word_embeddings "
    "tie_prediction_bias embedding_scale residual_scale logits_scale logits_softcap output_bias lm_head_bias "
    "qkv_bias attention_output_bias feed_forward_bias norm_bias embedding_norm embedding_dropout "
    "attention_dropout activation_dropout dropout final_dropout layer_dropout decoder_layer_dropout "
    "classifier_dropout token_dropout answer_dropout initializer_range initial_weights";
// Of these, not every value: the first word of each one that it computes.
const std::map<std::string_view, const char*> kValues{
    {"position", "none sinusoidal learned t5_buckets rotary alibi"},
    {"rope_scaling", "none linear llama3 yarn"}};

Json known_config(const TransformerConfig& config) {
  Json json;
  const auto plain = fields_of(TransformerConfig());
  for (const auto& [name, text] : fields_of(config)) {
    const auto at_default = std::ranges::find(plain, name, [](const auto& field) { return field.first; });
    const auto values = kValues.find(name);
    const bool known = values != kValues.end() ? has_word(values->second, text.substr(0, text.find(' ')))
                                               : has_word(kFields, name) || text == at_default->second;
    if (!known) throw Error("--format html: the page's engine has no ", name, " = ", text);
    json[std::string(name)] = text;
  }
  return json;
}

// Types of the parts of a tokenizer.json that the page has.
const std::map<std::string_view, const char*> kParts{
    {"normalizer",
     "Sequence BertNormalizer Lowercase StripAccents Strip Replace Prepend Precompiled NFC NFD NFKC NFKD"},
    {"pre_tokenizer",
     "Sequence ByteLevel Metaspace Split BertPreTokenizer Whitespace WhitespaceSplit Punctuation Digits"},
    {"model", "BPE WordPiece Unigram WordLevel"},
    {"post_processor", "Sequence TemplateProcessing BertProcessing RobertaProcessing ByteLevel"},
    {"decoder", "Sequence WordPiece ByteLevel Metaspace BPEDecoder ByteFallback Fuse Replace Strip"}};

void check_part(std::string_view part, const nlohmann::json& section) {
  if (section.is_null()) return;
  const std::string type = section.value("type", "");
  if (!has_word(kParts.at(part), type))
    throw Error("--format html: the page has no ", part, " ", type.empty() ? "without a type" : type);
  for (const char* list : {"normalizers", "pretokenizers", "processors", "decoders"})
    if (section.contains(list))
      for (const auto& each : section[list]) check_part(part, each);
  const std::string expression =
      section.contains("pattern") ? section["pattern"].value("Regex", "") : std::string();
  if (!expression.empty() && expression != " {2,}" && !split_pattern_of(expression))
    throw Error("--format html: the page does not know the regular expression ", expression, " of the ",
                part);
}

// Texts and what tzoo makes of them, which the page compares with its own when it opens. None for a
// vocabulary without their characters.
Json probes_of(const Tokenizer& tokenizer) {
  std::string own;
  for (TokenId id = 0; id < std::min<TokenId>(300, static_cast<TokenId>(tokenizer.vocab_size())); ++id)
    own += tokenizer.decode(TokenIds{id});
  Json probes = Json::array();
  for (const std::string& text :
       {std::string("In the beginning God created the heaven and the earth."),
        std::string("  I'll buy 1234567 NAÏVE cafés, don't WE'VE\n\n\tx = y+1;  ½ ﬁ 北京 🙂 "),
        replace_invalid_utf8(own)}) {
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
  Json entry{{"name", name},
             {"shape", floats.sizes().vec()},
             {"type", rounds ? "int8" : "float32"},
             {"at", bytes.size()}};
  if (!rounds) {
    append(floats);
    return entry;
  }
  const at::Tensor scales = floats.abs().amax(1) / 127.0;
  append((floats / scales.clamp_min(1e-30).unsqueeze(1)).round().to(at::kChar).contiguous());
  append(scales.contiguous());
  return entry;
}

// The page may run its own script and the worker made of the engine, and reaches no network.
constexpr const char* kPolicy =
    "<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
    "script-src 'unsafe-inline' blob:; worker-src blob:; style-src 'unsafe-inline'\">";

std::string page_with(const Json& header, const std::string& weights) {
  using embedded::replaced;
  std::string page = replaced(embedded::whole_page(embedded::kFilePage), "<!DOCTYPE html>", kHtmlBegin);
  page = replaced(page, "<meta charset=\"utf-8\">", kPolicy);
  std::string model = replaced(embedded::kPageEngine.html, "/*SCRIPT*/", embedded::kPageEngine.script);
  const std::string json = header.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  model = replaced(model, "/*HEADER*/", embedded::inside_script(json));
  return replaced(page, "<script>", replaced(model, "/*WEIGHTS*/", encode_base64(weights)) + "<script>");
}

}  // namespace

HtmlExport export_html(const ModelPath& source, const fs::path& target, const std::string& weights) {
  const CheckpointConfig checkpoint = read_checkpoint_config(source);
  if (!has_word("causal-lm masked-lm seq2seq-lm", name_of(checkpoint.head)))
    throw Error("--format html: the page has no ", name_of(checkpoint.head), " head");
  Json header{{"model", model_name(source)},
              {"family", checkpoint.family->model_type},
              {"head", name_of(checkpoint.head)}};
  header["config"] = known_config(checkpoint.config);
  if (!fs::exists(source / "tokenizer.json"))
    throw Error("--format html: ", source, " has no tokenizer.json, from which the page encodes texts");
  const auto tokenizer = load_tokenizer(source, checkpoint.json.get());
  require_fit(*tokenizer, checkpoint.config, checkpoint.directory);
  const nlohmann::json parts = read_json(source / "tokenizer.json", kMostVocabulary);
  for (const auto& [part, types] : kParts) check_part(part, parts.value(std::string(part), nlohmann::json()));
  header["tokenizer"] = parts;
  header["tokenizer"]["kind"] = tokenizer->kind();
  if (fs::exists(source / "tokenizer_config.json") && parts["model"].value("type", "") != "BPE")
    header["tokenizer"]["cleans_up_spaces"] =
        read_json(source / "tokenizer_config.json").value("clean_up_tokenization_spaces", false);
  header["probes"] = probes_of(*tokenizer);
  if (const auto mask = tokenizer->special_id(SpecialToken::mask))
    header.update({{"mask_id", *mask}, {"mask_token", tokenizer->token_text(*mask)}});
  header["decoder_start"] =
      decoder_start(defaults_of(read_generation_config(source, checkpoint.json)), checkpoint.config);
  if (checkpoint.config.shape == Shape::kEncoderDecoder && header["decoder_start"] < 0)
    throw Error("--format html: ", source, " has no decoder_start_token_id");

  const at::NoGradGuard no_grad;
  const LoadedModel loaded = load_model(checkpoint);
  header["head_activation"] = name_of(loaded.model->parts().head.activation);
  header["parameters"] = loaded.model->parameter_count();
  if (checkpoint.config.has_position_table()) header["context"] = checkpoint.config.max_length();
  std::string bytes;
  for (const auto& entry : loaded.model->named_parameters())
    header["tensors"].push_back(added(entry.key(), entry.value(), weights == "int8", bytes));
  for (const auto& entry : loaded.model->named_buffers())  // of others, the engine computes the numbers
    if (entry.key() == "output_bias")
      header["tensors"].push_back(added(entry.key(), entry.value(), false, bytes));
  write_file(target, page_with(header, bytes));
  return {.tensors = static_cast<std::int64_t>(header["tensors"].size()),
          .bytes = static_cast<std::int64_t>(fs::file_size(target))};
}

}  // namespace zoo
