#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>
#include <nlohmann/json.hpp>

#include "apps/answers/answers.h"
#include "apps/serve/endpoints/endpoints.h"
#include "apps/serve/endpoints/look_parts.h"
#include "data/base/json.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMostInputs = 2048;

// Texts, or the ids of texts as they are.
struct EmbeddingInputs {
  std::string field;
  std::vector<std::string> texts;
  std::vector<Encoding> ids;
};

EmbeddingInputs inputs_of(RequestFields& fields, const std::string& field) {
  EmbeddingInputs inputs{field, {}, {}};
  for (const TextOrIds& one : fields.texts_or_ids(field, kMostInputs)) {
    if (const auto* text = std::get_if<std::string>(&one)) {
      inputs.texts.push_back(*text);
    } else {
      const TokenIds& ids = std::get<TokenIds>(one);
      inputs.ids.push_back({.ids = ids});
      inputs.ids.back().type_ids.resize(ids.size());
      inputs.ids.back().texts.resize(ids.size());
    }
    if (std::visit([](const auto& each) { return each.empty(); }, one))
      RequestFields::refuse(field, "is empty, or has an empty text or list of ids");
  }
  if (!inputs.texts.empty() && !inputs.ids.empty())
    RequestFields::refuse(field, "must be texts or lists of ids, not both");
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
        RequestFields::refuse(inputs.field,
                              "has the id " + std::to_string(id) + ", which is outside the vocabulary");
    }
    if (!most || encoding.size() <= *most) continue;
    if (!truncates)
      RequestFields::refuse(inputs.field,
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

// The first numbers of each vector (Kusupati et al., 2022, "Matryoshka representation learning").
at::Tensor first_numbers(const at::Tensor& vectors, std::int64_t count) {
  if (count > vectors.size(1))
    RequestFields::refuse("dimensions", "must be at most " + std::to_string(vectors.size(1)) +
                                            ", the numbers of the model's vectors, got " +
                                            std::to_string(count));
  return vectors.slice(1, 0, count).contiguous();
}

// Vectors [N, D] and the tokens that they were made from.
struct Vectors {
  at::Tensor rows;
  std::size_t tokens = 0;
};

Vectors vectors_of(ServerState& state, ComputeJob& job, const TextEmbedder& embedder,
                   const EmbeddingInputs& inputs, bool truncates) {
  const std::vector<Encoding> encodings = encodings_of(inputs, embedder, truncates);
  Vectors vectors{at::stack(
      state.passes.run(job, embedder.pass(/*batch_size=*/32, /*prompted=*/inputs.ids.empty()), encodings))};
  if (!vectors.rows.isfinite().all().item<bool>())
    RequestFields::refuse(inputs.field, "has a text whose vector is not finite: its pooling leaves no token");
  for (const Encoding& encoding : encodings) vectors.tokens += encoding.size();
  return vectors;
}

// TEI's fields of what is too long, and of the prompt before each text; without one it is the default.
struct TeiOptions {
  bool truncates = false;
  std::optional<std::string> prompt_name;

  explicit TeiOptions(RequestFields& fields)
      : truncates(truncates_as_tei(fields, /*usual=*/false)), prompt_name(fields.text("prompt_name")) {}

  TextEmbedder prompted(const ServedEmbedder& made) const {
    return prompt_name ? made.embedder.with_prompt(made.config.prompt_named(*prompt_name)) : made.embedder;
  }
};

}  // namespace

const ServedEmbedder& ApiCall::embedder(ComputeJob& job) const {
  const ServedEmbedder* embedder = nullptr;
  job.run([&] { embedder = &embedder_of(served, state.options); });
  return *embedder;
}

WebReply answer_embeddings(ApiCall& call) {
  RequestFields& fields = call.fields;
  const EmbeddingInputs inputs = inputs_of(fields, "input");
  const bool truncates = fields.flag("truncate").value_or(false);
  const std::string format = fields.text("encoding_format").value_or("float");
  if (format != "float" && format != "base64")
    RequestFields::refuse("encoding_format", "must be float or base64");
  const auto dimensions = fields.integer("dimensions", 1, 1'000'000);
  fields.ignore({"user"});

  ComputeJob job = call.job();
  auto [rows, tokens] = vectors_of(call.state, job, call.embedder(job).embedder, inputs, truncates);
  if (dimensions) rows = unit_vectors(first_numbers(rows, *dimensions));  // as OpenAI's
  ordered_json data = ordered_json::array();
  for (std::int64_t i = 0; i < rows.size(0); ++i)
    data.push_back(
        {{"object", "embedding"},
         {"index", i},
         {"embedding", format == "base64" ? ordered_json(base64_of(rows[i])) : json_numbers(rows[i])}});
  return {.body = json_text(ordered_json{{"object", "list"},
                                         {"data", std::move(data)},
                                         {"model", call.served.name},
                                         {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}})};
}

WebReply answer_embed(ApiCall& call) {
  RequestFields& fields = call.fields;
  const EmbeddingInputs inputs = inputs_of(fields, "inputs");
  const TeiOptions options(fields);
  if (options.prompt_name && !inputs.ids.empty())
    RequestFields::refuse("prompt_name", "needs 'inputs' that are texts: ids are read as they are");
  const bool normalizes = fields.flag("normalize").value_or(true);
  const auto dimensions = fields.integer("dimensions", 1, 1'000'000);

  ComputeJob job = call.job();
  TextEmbedder embedder = options.prompted(call.embedder(job));
  if (!normalizes) embedder = embedder.unnormalized();
  at::Tensor rows = vectors_of(call.state, job, embedder, inputs, options.truncates).rows;
  if (dimensions) rows = first_numbers(rows, *dimensions);
  if (normalizes) rows = unit_vectors(rows);
  return {.body = json_text(json_numbers(rows))};
}

WebReply answer_similarity(ApiCall& call) {
  RequestFields given = call.fields.object("inputs"), parameters = call.fields.object("parameters");
  EmbeddingInputs inputs{"inputs", given.texts("sentences", kMostInputs - 1), {}};
  if (inputs.texts.empty()) given.refuse_missing("sentences", "must be a list of texts");
  const std::optional<std::string> source = given.text("source_sentence");
  if (!source) given.refuse_missing("source_sentence");
  inputs.texts.push_back(*source);
  for (const std::string& text : inputs.texts)
    if (text.empty()) RequestFields::refuse("inputs", "has an empty text");
  const TeiOptions options(parameters);
  for (const RequestFields* each : {&given, &parameters}) each->refuse_others();

  ComputeJob job = call.job();
  const TextEmbedder embedder = options.prompted(call.embedder(job));
  const at::Tensor rows = unit_vectors(vectors_of(call.state, job, embedder, inputs, options.truncates).rows);
  return {.body = json_text(json_numbers(at::matmul(rows.slice(0, 0, -1), rows[-1])))};
}

}  // namespace zoo
