#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "apps/answers/answers.h"
#include "apps/serve/endpoints/endpoints.h"
#include "apps/serve/writing_reply.h"
#include "data/base/json.h"
#include "models/model.h"
#include "models/tasks/answer.h"
#include "models/tasks/classify.h"
#include "models/tasks/fill_mask.h"
#include "models/tasks/search/rank.h"
#include "models/tasks/translate.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMostTexts = 1024;
constexpr std::int64_t kMostGuesses = 1000;

// The model's part with a head. Throws ApiError naming both if it has another.
TextModel& text_part(ServedModel& model, const char* does, std::initializer_list<Head> heads) {
  if (!model.text || std::ranges::find(heads, model.text->head) == heads.end()) model.refuse_head(does);
  return *model.text;
}

std::string required_text(RequestFields& fields, const char* name) {
  const std::optional<std::string> text = fields.text(name);
  if (!text) fields.refuse_missing(name);
  if (text->empty()) RequestFields::refuse(name, "must be a text that is not empty");
  return *text;
}

// One text or several: the reply has an entry for each, in a list.
std::vector<std::string> required_texts(RequestFields& fields) {
  std::vector<std::string> texts = fields.texts("text", kMostTexts);
  if (texts.empty()) fields.refuse_missing("text", "must be a text or a list of texts");
  for (const std::string& text : texts)
    if (text.empty()) RequestFields::refuse("text", "has an empty text");
  return texts;
}

// Texts, or objects with a text, as Cohere's clients send them.
std::vector<std::string> documents_of(RequestFields& fields, const char* name) {
  const ordered_json* given = fields.get(name);
  if (given == nullptr) fields.refuse_missing(name, "must be a list of texts");
  if (!given->is_array() || given->empty() || given->size() > kMostTexts)
    RequestFields::refuse(name, "must be a list of 1 to " + std::to_string(kMostTexts) + " texts");
  std::vector<std::string> documents;
  for (const ordered_json& each : *given) {
    const bool is_object = each.is_object() && each.contains("text");
    const ordered_json& text = is_object ? each["text"] : each;
    if (!text.is_string() || text.get_ref<const std::string&>().empty())
      RequestFields::refuse(name, "must hold texts that are not empty, or objects with one in \"text\"");
    documents.push_back(text.get<std::string>());
  }
  return documents;
}

// TEI's inputs: a text, a pair of texts, or a list of lists with one or two texts. True if it is one text or
// pair.
bool read_tei_inputs(RequestFields& fields, ClassifyRequest& asked) {
  const ordered_json* given = fields.get("inputs");
  if (given == nullptr) fields.refuse_missing("inputs");
  const bool single =
      given->is_string() || (given->is_array() && !given->empty() && given->front().is_string());
  const ordered_json list = single ? ordered_json::array({*given}) : *given;
  const char* expected = "must be a text, a pair of texts, or a list of lists with one or two texts";
  if (!list.is_array() || list.empty() || list.size() > kMostTexts) RequestFields::refuse("inputs", expected);
  for (const ordered_json& each : list) {
    const ordered_json texts = each.is_string() ? ordered_json::array({each}) : each;
    const bool fits = texts.is_array() && (texts.size() == 1 || texts.size() == 2) &&
                      std::ranges::all_of(texts, [](const ordered_json& text) { return text.is_string(); });
    if (!fits) RequestFields::refuse("inputs", expected);
    asked.texts.push_back(texts[0].get<std::string>());
    asked.pairs.push_back(texts.size() == 2 ? texts[1].get<std::string>() : "");
    if (asked.texts.back().empty()) RequestFields::refuse("inputs", "has an empty text");
  }
  return single;
}

// The ids that the decoder writes; each step is a piece.
TokenIds translation_of(TranslatingModel& translator, const TokenIds& source,
                        const GenerationOptions& options, ComputeJob& job) {
  const auto place = translator.place(job.watch());
  std::optional<GenerationRun> run;
  GenerationResult result;
  for (bool more = true; more;) {
    job.run([&] {
      if (!run) run.emplace(*translator.decoder, std::vector<TokenIds>{source}, options);
      more = run->step();
      if (!more) result = run->finish();
    });
  }
  return result.ids[0];
}

WebReply results(ordered_json list, const ServedModel& model) {
  return {.body = json_text(ordered_json{{"model", model.name}, {"results", std::move(list)}})};
}

bool ranks_by_head(const ServedModel& model) {
  return model.text && model.text->head == Head::kSequenceClassification;
}

// Documents, best first, by the model's head or by its vectors; adds the tokens that are read to `tokens`.
std::vector<RankedDocument> ranked(ApiCall& call, const RankRequest& asked, std::size_t* tokens = nullptr) {
  ComputeJob job = call.job();
  const RunPass run = [&, shared = call.state.shared(job)](const TextPass& pass, const auto& texts) {
    for (const Encoding& text : texts)
      if (tokens != nullptr) *tokens += text.size();
    return shared(pass, texts);
  };
  if (ranks_by_head(call.served)) return rank(*call.served.text, asked, run);
  const auto& [config, embedder] = call.embedder(job);
  return rank(search_embedders(embedder, config), asked, run);
}

WebReply rerank_as_tei(ApiCall& call) {
  RequestFields& fields = call.fields;
  RankRequest asked{.query = required_text(fields, "query"), .documents = documents_of(fields, "texts")};
  asked.truncates = truncates_as_tei(fields, /*usual=*/true);
  // TEI applies the sigmoid whatever activation the model's directory names.
  const bool sigmoid = !fields.flag("raw_scores").value_or(false) && ranks_by_head(call.served);
  asked.raw_scores = true;
  const bool returns_text = fields.flag("return_text").value_or(false);
  ordered_json list = ordered_json::array();
  for (const auto& [index, score] : ranked(call, asked)) {
    list.push_back({{"index", index}, {"score", sigmoid ? 1 / (1 + std::exp(-score)) : score}});
    if (returns_text) list.back()["text"] = asked.documents[index];
  }
  return {.body = json_text(list)};
}

}  // namespace

bool truncates_as_tei(RequestFields& fields, bool usual) {
  const std::string direction = fields.text("truncation_direction").value_or("right");
  if (direction != "right" && direction != "Right")
    RequestFields::refuse("truncation_direction", "must be right");
  return fields.flag("truncate").value_or(usual);
}

WebReply answer_tokenize(ApiCall& call) {
  RequestFields& fields = call.fields;
  const Tokenizer& tokenizer = *call.served.tokenizer;
  const std::optional<std::string> text = fields.text("content");
  if (!text) fields.refuse_missing("content");
  const bool special = fields.flag("add_special").value_or(true);
  const bool pieces = fields.flag("with_pieces").value_or(false);
  fields.refuse_others();
  const TokenIds ids =
      special ? tokenizer.encode(*text, EncodeOptions{.with_offsets = false}).ids : tokenizer.encode(*text);
  ordered_json tokens = ordered_json::array();
  for (const TokenId id : ids) {
    tokens.push_back(id);
    if (pieces) tokens.back() = {{"id", id}, {"piece", replace_invalid_utf8(tokenizer.token_text(id))}};
  }
  return {.body = json_text(ordered_json{{"tokens", std::move(tokens)}})};
}

WebReply answer_detokenize(ApiCall& call) {
  RequestFields& fields = call.fields;
  const Tokenizer& tokenizer = *call.served.tokenizer;
  const auto given = fields.ids("tokens", tokenizer.vocab_size());
  if (!given) fields.refuse_missing("tokens", "must be a list of ids");
  const bool keep = fields.flag("keep_special").value_or(false);
  fields.refuse_others();
  const TokenIds ids(given->begin(), given->end());
  const std::string text = keep ? tokenizer.decode_with_special_tokens(ids) : tokenizer.decode(ids);
  return {.body = json_text(ordered_json{{"content", replace_invalid_utf8(text)}})};
}

WebReply answer_fill_mask(ApiCall& call) {
  RequestFields& fields = call.fields;
  const TextModel& model = text_part(call.served, "fills no masks", {Head::kMaskedLm});
  const std::vector<std::string> texts = required_texts(fields);
  FillMaskRequest asked;
  asked.top_k = fields.integer("top_k", 1, kMostGuesses).value_or(asked.top_k);
  ordered_json list = ordered_json::array();
  ComputeJob job = call.job();
  for (const std::string& text : texts) {
    asked.text = text;
    job.run([&] { list.push_back(answer_json(asked, fill_mask(model, asked))); });
  }
  return results(std::move(list), call.served);
}

WebReply answer_classify(ApiCall& call) {
  RequestFields& fields = call.fields;
  const TextModel& model =
      text_part(call.served, "labels no texts", {Head::kSequenceClassification, Head::kTokenClassification});
  ClassifyRequest asked{.texts = required_texts(fields), .pairs = fields.texts("text_pair", kMostTexts)};
  if (!asked.pairs.empty() && asked.pairs.size() != asked.texts.size())
    RequestFields::refuse("text_pair", "must have a text for each of 'text'");
  const std::string aggregation = fields.text("aggregation").value_or("first");
  const auto place = std::ranges::find(aggregation_names(), aggregation);
  if (place == aggregation_names().end())
    RequestFields::refuse("aggregation", "must be none, simple, first, average or max");
  asked.aggregation = static_cast<Aggregation>(place - aggregation_names().begin());
  ComputeJob job = call.job();
  return results(answers_json(asked, classify(model, asked, call.state.shared(job))), call.served);
}

WebReply answer_predict(ApiCall& call) {
  RequestFields& fields = call.fields;
  const TextModel& model = text_part(call.served, "labels no texts", {Head::kSequenceClassification});
  ClassifyRequest asked;
  const bool single = read_tei_inputs(fields, asked);
  asked.truncates = truncates_as_tei(fields, /*usual=*/true);
  asked.raw_scores = fields.flag("raw_scores").value_or(false);
  ComputeJob job = call.job();
  std::vector<TextLabels> all;
  try {
    all = classify(model, asked, call.state.shared(job));
  } catch (const TokenCountError& error) {
    throw TokenCountError("inputs", error.tokens, error.limit);
  }
  ordered_json list = ordered_json::array();
  for (TextLabels& labels : all) {
    // A regression's values have no probabilities: they are as they are.
    if (labels.scores.empty())
      for (const float value : labels.values)
        labels.scores.push_back({label_name(model.model->config(), std::ssize(labels.scores)), value});
    std::ranges::stable_sort(labels.scores, std::greater<>(), &ScoredLabel::score);
    list.push_back(ordered_json::array());
    for (const auto& [label, score] : labels.scores)
      list.back().push_back({{"score", score}, {"label", label}});
  }
  return {.body = json_text(single ? list[0] : list)};
}

WebReply answer_question(ApiCall& call) {
  RequestFields& fields = call.fields;
  const TextModel& model =
      text_part(call.served, "answers no questions about a text", {Head::kQuestionAnswering});
  AnswerRequest asked{.question = required_text(fields, "question"),
                      .context = required_text(fields, "context"),
                      .max_length = fields.integer("max_length", 8, 1'000'000),
                      .stride = fields.integer("stride", 0, 1'000'000)};
  AnswerRules& rules = asked.rules;
  rules.top_k = fields.integer("top_k", 1, kMostGuesses).value_or(rules.top_k);
  rules.max_answer_length =
      fields.integer("max_answer_length", 1, 1'000'000).value_or(rules.max_answer_length);
  rules.impossible = fields.flag("impossible").value_or(rules.impossible);
  rules.align_to_words = fields.flag("align_to_words").value_or(rules.align_to_words);
  ComputeJob job = call.job();
  return results(answers_json(asked, answer_question(model, asked, call.state.shared(job))), call.served);
}

WebReply answer_rerank(ApiCall& call) {
  RequestFields& fields = call.fields;
  if (fields.get("texts") != nullptr) return rerank_as_tei(call);
  const RankRequest asked{.query = required_text(fields, "query"),
                          .documents = documents_of(fields, "documents"),
                          .top_k = fields.integer("top_n", 1, kMostTexts)};
  const bool returns_text = fields.flag("return_documents").value_or(false);
  ordered_json list = ordered_json::array();
  std::size_t tokens = 0;
  for (const auto& [index, score] : ranked(call, asked, &tokens)) {
    list.push_back({{"index", index}, {"relevance_score", score}});
    if (returns_text) list.back()["document"] = {{"text", asked.documents[index]}};
  }
  // Cohere counts a search for each hundred documents.
  const std::size_t searches = (asked.documents.size() + 99) / 100;
  return {.body = json_text(ordered_json{{"id", new_reply_id("rerank-")},
                                         {"model", call.served.name},
                                         {"usage", {{"total_tokens", tokens}}},
                                         {"meta", {{"billed_units", {{"search_units", searches}}}}},
                                         {"results", std::move(list)}})};
}

WebReply answer_translate(ApiCall& call) {
  constexpr std::int64_t kMostTokens = 4096, kMostBeams = 16;
  RequestFields& fields = call.fields;
  const TextModel& model = text_part(call.served, "translates no texts", {Head::kSeq2SeqLm});
  const std::vector<std::string> texts = required_texts(fields);
  const std::string prefix = fields.text("prefix").value_or("");
  const std::string source = fields.text("source_lang").value_or(""),
                    target = fields.text("target_lang").value_or("");
  const auto length = fields.integer("max_new_tokens", 1, kMostTokens);
  const auto beams = fields.integer("num_beams", 1, kMostBeams);
  TranslatingModel& translator = *call.served.translator;
  GenerationOptions options = translator.options(beams, length);
  options.max_new_tokens = std::min(options.max_new_tokens, kMostTokens);
  const Languages languages = languages_of(*model.tokenizer, source, target);
  if (languages.target) options.history.forced_bos_token_id = *languages.target;
  std::vector<TokenIds> sources;
  for (const std::string& text : texts) {
    sources.push_back(source_ids(model, prefix + text, languages));
    if (const std::size_t most = translator.most_tokens; sources.back().size() > most)
      RequestFields::refuse("text",
                            "has " + std::to_string(sources.back().size()) + " tokens; at most " +
                                std::to_string(most) + " are translated (--context)",
                            "context_length_exceeded");
  }
  ordered_json list = ordered_json::array();
  ComputeJob job = call.job();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const TokenIds ids = translation_of(translator, sources[i], options, job);
    list.push_back(translation_json(texts[i], translated_text(model, ids), ids));
  }
  return results(std::move(list), call.served);
}

}  // namespace zoo
