#include <algorithm>
#include <cstring>

#include <ATen/ops/stack.h>
#include <nlohmann/json.hpp>

#include "apps/serve/api_error.h"
#include "apps/serve/endpoints/endpoints.h"
#include "data/base/base64.h"
#include "data/base/json.h"
#include "models/tasks/encoding_batch.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMostInputs = 2048;

// Texts, or the ids of texts as they are.
struct EmbeddingInputs {
  std::vector<std::string> texts;
  std::vector<Encoding> ids;
};

Encoding encoding_of(const ordered_json& list) {
  Encoding encoding;
  for (const ordered_json& id : list) {
    if (!id.is_number_integer() || id < 0 || id > 0x7FFFFFFF)
      RequestFields::refuse("input", "must be a text, a list of ids, or a list of either");
    encoding.ids.push_back(id.get<TokenId>());
  }
  if (encoding.ids.empty()) RequestFields::refuse("input", "has an empty list of ids");
  encoding.type_ids.resize(encoding.ids.size());
  encoding.texts.resize(encoding.ids.size());
  return encoding;
}

EmbeddingInputs inputs_of(RequestFields& fields) {
  EmbeddingInputs inputs;
  const ordered_json* given = fields.get("input");
  if (given == nullptr) fields.refuse_missing("input");
  if (given->is_array() && given->empty()) RequestFields::refuse("input", "is empty");
  if (given->is_array() && given->front().is_number()) {
    inputs.ids.push_back(encoding_of(*given));
  } else if (given->is_array() && given->front().is_array()) {
    if (given->size() > kMostInputs)
      RequestFields::refuse("input", "must have at most " + std::to_string(kMostInputs) + " texts");
    for (const ordered_json& one : *given) {
      if (!one.is_array())
        RequestFields::refuse("input", "must be a text, a list of ids, or a list of either");
      inputs.ids.push_back(encoding_of(one));
    }
  } else {
    inputs.texts = fields.texts("input", kMostInputs);
    for (const std::string& text : inputs.texts)
      if (text.empty()) RequestFields::refuse("input", "has an empty text");
  }
  return inputs;
}

// The tokens that are read. A text that is too long is cut only if the request says so.
std::vector<Encoding> encodings_of(const EmbeddingInputs& inputs, const TextEmbedder& embedder,
                                   bool truncates) {
  const std::optional<std::size_t> most = embedder.max_length();
  std::vector<Encoding> encodings =
      inputs.ids.empty() ? embedder.encode(inputs.texts, /*truncates=*/false) : inputs.ids;
  for (std::size_t i = 0; i < encodings.size(); ++i) {
    Encoding& encoding = encodings[i];
    for (const TokenId id : encoding.ids) {
      if (id >= embedder.config().vocab_size)
        RequestFields::refuse("input",
                              "has the id " + std::to_string(id) + ", which is outside the vocabulary");
    }
    if (!most || encoding.size() <= *most) continue;
    if (!truncates)
      RequestFields::refuse("input",
                            "has a text of " + std::to_string(encoding.size()) + " tokens; the model reads " +
                                std::to_string(*most) + ": shorten it, or cut it by 'truncate': true",
                            "context_length_exceeded");
    if (inputs.ids.empty()) {
      encoding = std::move(embedder.encode({inputs.texts[i]})[0]);
    } else {
      encoding.ids.resize(*most);
      encoding.type_ids.resize(*most);
      encoding.texts.resize(*most);
    }
  }
  return encodings;
}

// The first numbers of each vector, of length 1 again, as OpenAI's (Kusupati et al., 2022, "Matryoshka
// representation learning").
at::Tensor first_numbers(const at::Tensor& vectors, std::int64_t count) {
  if (count > vectors.size(1))
    RequestFields::refuse("dimensions", "must be at most " + std::to_string(vectors.size(1)) +
                                            ", the numbers of the model's vectors, got " +
                                            std::to_string(count));
  return unit_vectors(vectors.slice(1, 0, count)).contiguous();
}

ordered_json vector_json(const float* numbers, std::size_t count, bool as_base64) {
  if (!as_base64) return std::vector<float>(numbers, numbers + count);
  std::string bytes(count * sizeof(float), '\0');  // little-endian, as the processors of this program are
  std::memcpy(bytes.data(), numbers, bytes.size());
  return encode_base64(bytes);
}

}  // namespace

WebReply answer_embeddings(ServerState& state, const WebRequest& request) {
  RequestFields fields(request.body);
  ServedModel& served = state.model_of(fields);
  const EmbeddingInputs inputs = inputs_of(fields);
  const bool truncates = fields.flag("truncate").value_or(false);
  const std::string format = fields.text("encoding_format").value_or("float");
  if (format != "float" && format != "base64")
    RequestFields::refuse("encoding_format", "must be float or base64");
  const auto dimensions = fields.integer("dimensions", 1, 1'000'000);
  fields.ignore({"user", "model"});
  fields.refuse_others();

  ComputeJob job(state.thread, state.watch(request));
  const TextEmbedder* embedder = nullptr;
  job.run([&] { embedder = &embedder_of(served, state.options); });
  const std::vector<Encoding> encodings = encodings_of(inputs, *embedder, truncates);
  at::Tensor vectors = at::stack(
      state.passes.run(job, embedder->pass(/*batch_size=*/32, /*prompted=*/inputs.ids.empty()), encodings));
  if (!vectors.isfinite().all().item<bool>())
    RequestFields::refuse("input", "has a text whose vector is not finite: its pooling leaves no token");
  if (dimensions) vectors = first_numbers(vectors, *dimensions);
  const auto width = static_cast<std::size_t>(vectors.size(1));
  ordered_json data = ordered_json::array();
  std::size_t tokens = 0;
  for (std::size_t i = 0; i < encodings.size(); ++i) {
    const float* row = vectors.const_data_ptr<float>() + i * width;
    data.push_back(
        {{"object", "embedding"}, {"index", i}, {"embedding", vector_json(row, width, format == "base64")}});
    tokens += encodings[i].size();
  }
  return {.body = json_text(ordered_json{{"object", "list"},
                                         {"data", std::move(data)},
                                         {"model", served.name},
                                         {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}})};
}

WebReply answer_tokenize(ServerState& state, const WebRequest& request) {
  RequestFields fields(request.body);
  ServedModel& served = state.model_of(fields);
  const std::optional<std::string> text = fields.text("content");
  if (!text) fields.refuse_missing("content");
  const bool special = fields.flag("add_special").value_or(true);
  const bool pieces = fields.flag("with_pieces").value_or(false);
  fields.refuse_others();
  const TokenIds ids = special ? served.tokenizer->encode(*text, EncodeOptions{.with_offsets = false}).ids
                               : served.tokenizer->encode(*text);
  ordered_json tokens = ordered_json::array();
  for (const TokenId id : ids) {
    if (pieces) {
      tokens.push_back({{"id", id}, {"piece", replace_invalid_utf8(served.tokenizer->token_text(id))}});
    } else {
      tokens.push_back(id);
    }
  }
  return {.body = json_text(ordered_json{{"tokens", std::move(tokens)}})};
}

WebReply answer_detokenize(ServerState& state, const WebRequest& request) {
  RequestFields fields(request.body);
  ServedModel& served = state.model_of(fields);
  const auto given = fields.ids("tokens", served.tokenizer->vocab_size());
  if (!given) fields.refuse_missing("tokens", "must be a list of ids");
  const bool keep = fields.flag("keep_special").value_or(false);
  fields.refuse_others();
  const TokenIds ids(given->begin(), given->end());
  const std::string text =
      keep ? served.tokenizer->decode_with_special_tokens(ids) : served.tokenizer->decode(ids);
  return {.body = json_text(ordered_json{{"content", replace_invalid_utf8(text)}})};
}

}  // namespace zoo
