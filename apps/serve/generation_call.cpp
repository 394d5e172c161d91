#include "apps/serve/generation_call.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <limits>
#include <mutex>
#include <random>

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "data/base/field_error.h"
#include "data/base/lines.h"
#include "data/base/sizes.h"
#include "models/tasks/generation_settings.h"
#include "models/tasks/text_constraint.h"
#include "tokenizer/constraint/json_schema.h"
#include "tokenizer/constraint/regular_expression.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMostStops = 16;
constexpr std::int64_t kMostSeed = std::numeric_limits<std::int64_t>::max();

std::vector<std::pair<TokenId, double>> logit_bias(RequestFields& fields, std::int64_t vocab_size) {
  std::vector<std::pair<TokenId, double>> biases;
  const ordered_json* given = fields.get("logit_bias");
  if (given == nullptr) return biases;
  if (!given->is_object()) RequestFields::refuse("logit_bias", "must be an object of ids and numbers");
  for (const auto& [key, value] : given->items()) {
    const auto id = number_in<TokenId>(key);
    if (!id || std::to_string(*id) != key || *id < 0 || *id >= vocab_size)
      RequestFields::refuse("logit_bias",
                            "has the key '" + excerpt(key, 40) + "', which is no id of the vocabulary");
    if (!value.is_number() || !(std::abs(value.get<double>()) <= 100))
      RequestFields::refuse("logit_bias", "must have numbers from -100 to 100");
    biases.emplace_back(*id, value.get<double>());
  }
  return biases;
}

// The schema of response_format; nothing for plain text.
std::optional<ordered_json> schema_of_format(RequestFields& fields) {
  std::optional<ordered_json> schema;
  if (fields.get("response_format") == nullptr) return schema;
  RequestFields format = fields.object("response_format");
  const std::string type = format.text("type").value_or("");
  const auto read = [&](RequestFields& object, const char* name) {
    if (const ordered_json* given = object.get(name)) schema = *given;
  };
  if (type == "json_object") {
    schema = ordered_json{{"type", "object"}};
    read(format, "schema");  // llama.cpp's
    read(format, "value");   // huggingface_hub's
  } else if (type == "json_schema") {
    RequestFields named = format.object("json_schema");
    read(named, "schema");
    named.ignore({"name", "description", "strict"});
    named.refuse_others();
  }
  if (!schema && type != "text")
    RequestFields::refuse("response_format",
                          "must be {\"type\": \"text\"}, {\"type\": \"json_object\"} or "
                          "{\"type\": \"json_schema\", \"json_schema\": {\"schema\": …}}");
  format.refuse_others();
  return schema;
}

std::optional<AllowedTexts> allowed_texts(RequestFields& fields) {
  const std::optional<std::string> regex = fields.text("regex");
  const ordered_json* given = fields.get("json_schema");
  const std::optional<ordered_json> format = schema_of_format(fields);
  const char* name = regex ? "regex" : given != nullptr ? "json_schema" : "response_format";
  if ((regex ? 1 : 0) + (given != nullptr ? 1 : 0) + (format ? 1 : 0) > 1)
    RequestFields::refuse(name, "and another field constrain the text: give only one");
  if (!regex && given == nullptr && !format) return std::nullopt;
  const ordered_json schema = format ? *format : given != nullptr ? *given : ordered_json();
  const auto pattern = [name, regex, schema] {
    try {
      if (!regex) return json_schema_pattern(schema);
      return parse_regular_expression(*regex, ExpressionDialect::kPython).pattern;
    } catch (const Error& error) {
      RequestFields::refuse(name, std::string("is refused: ") + error.what());
    }
  };
  return AllowedTexts{name, regex ? "regex " + *regex : "schema " + schema.dump(), pattern};
}

// Sets a field of the settings to what the request says, under a name of its own or the field's.
void read_field(RequestFields& fields, GenerationSettings& settings, const std::string& name,
                const std::string& field_name) {
  const GenerationField field = field_of(settings, field_name);
  const auto set = [&](auto* member) {
    if constexpr (std::is_same_v<decltype(member), double*> ||
                  std::is_same_v<decltype(member), std::optional<double>*>) {
      if (const auto value = fields.number(name, field.range)) *member = *value;
    } else {
      const auto least = static_cast<std::int64_t>(field.range.least.value_or(0)),
                 most = static_cast<std::int64_t>(field.range.most.value_or(kLargestGivenCount));
      if (const auto value = fields.integer(name, least, most)) *member = *value;
    }
  };
  std::visit(set, field.member);
}

void read_sampling(RequestFields& fields, GenerationSettings& settings, bool draws_seed) {
  for (const char* name : {"temperature", "top_p", "min_p", "typical_p", "repetition_penalty",
                           "presence_penalty", "frequency_penalty", "no_repeat_ngram_size"})
    read_field(fields, settings, name, name);
  read_field(fields, settings, "min_tokens", "min_new_tokens");
  SamplingOptions& sampling = settings.options.sampling;
  const ordered_json* top_k = fields.get("top_k");
  if (top_k != nullptr && *top_k == -1) sampling.top_k = 0;  // as in vLLM: all
  else read_field(fields, settings, "top_k", "top_k");
  const auto seed = fields.integer("seed", -1, kMostSeed);  // -1, as in llama.cpp: any
  if (draws_seed || seed == -1) sampling.seed = std::uint64_t{std::random_device()()} << 16;
  if (seed && *seed >= 0) sampling.seed = static_cast<std::uint64_t>(*seed);
}

void read_stream(RequestFields& fields, WritingRequest& request) {
  request.stream = fields.flag("stream").value_or(false);
  RequestFields options = fields.object("stream_options");
  if (fields.get("stream_options") != nullptr && !request.stream)
    RequestFields::refuse("stream_options", "needs 'stream': true");
  request.include_usage = options.flag("include_usage").value_or(false);
  options.ignore({"include_obfuscation"});
  options.refuse_others();
}

}  // namespace

AutomatonCache::Automaton automaton_of(const WritingModel& model, const GenerateSession& session,
                                       const std::string& name, const std::function<PatternPtr()>& pattern) {
  std::string key;  // a conversation has end tokens of its own, before what a client writes
  for (const TokenId id : session.defaults.eos_token_ids) key += std::to_string(id) + " ";
  return model.automata.get(key + name, [&] {
    return make_token_automaton(pattern(), session, session.pieces ? *session.pieces : model.token_bytes());
  });
}

WritingRequest read_writing_request(RequestFields& fields, const ServedModel& served,
                                    const GenerateSession& session) {
  const WritingModel& model = *served.writing;
  WritingRequest request{.model = &model, .session = std::make_shared<GenerateSession>(session)};
  GenerationSettings settings = model.defaults;
  read_sampling(fields, settings, model.draws_seeds);
  read_stream(fields, request);
  std::vector<std::string> stops = fields.texts("stop", kMostStops);
  std::erase(stops, "");  // which some clients send for "none"
  if (!stops.empty()) request.session->stop = StopStrings(std::move(stops));
  request.batch->samples = fields.integer("n", 1, kMostSamples).value_or(1);
  request.batch->adapter = served.adapter;

  GenerationOptions& options = request.batch->options;
  options = settings.generation_options();
  options.history.logit_bias = logit_bias(fields, request.session->vocab_size());
  request.allowed = allowed_texts(fields);
  complete(options, *request.session);
  fields.ignore({"user", "metadata", "store", "service_tier", "prompt_cache_key", "safety_identifier",
                 "prompt_cache_retention"});
  return request;
}

void constrain(WritingRequest& request) {
  if (!request.allowed) return;
  const auto& [field, key, pattern] = *request.allowed;
  try {
    request.batch->options.constraint =
        make_text_constraint(automaton_of(*request.model, *request.session, key, pattern), *request.session);
  } catch (const Error& error) {
    RequestFields::refuse(field, std::string("is refused: ") + error.what());
  }
}

std::optional<std::int64_t> read_length(RequestFields& fields, const std::string& name, std::int64_t least) {
  const ordered_json* value = fields.get(name);
  return value != nullptr && *value == -1 ? -1 : fields.integer(name, least, 1'000'000'000);
}

void set_length(WritingRequest& request, std::optional<std::int64_t> given, const std::string& name,
                std::int64_t most, bool clips) {
  const std::int64_t context = request.model->batch->options().context;
  std::size_t longest = 0;
  for (const TokenIds& prompt : request.batch->prompts) longest = std::max(longest, prompt.size());
  const std::int64_t room = context - static_cast<std::int64_t>(longest);
  if (given == -1) given.reset();
  std::int64_t wanted = given.value_or(std::max<std::int64_t>(1, most > 0 ? std::min(room, most) : room));
  if (most > 0 && wanted > most)
    RequestFields::refuse(name,
                          "must be at most " + std::to_string(most) + ", got " + std::to_string(wanted));
  request.clipped = clips && wanted > room && room > 0;
  if (request.clipped) wanted = room;
  if (wanted > room)
    throw ApiError(400,
                   "the context is " + std::to_string(context) + " tokens; the prompt has " +
                       std::to_string(longest) + " and '" + name + "' asks for " + std::to_string(wanted),
                   name, "context_length_exceeded");
  request.batch->only_prompt = wanted == 0;
  GenerationOptions& options = request.batch->options;
  options.max_new_tokens = std::max<std::int64_t>(1, wanted);
  try {
    if (options.constraint && wanted > 0) options.constraint->begin(options.max_new_tokens);
  } catch (const FieldError& error) {  // more than the request's own field allows
    throw ApiError(400, error.message([&](const std::string&) { return "'" + name + "'"; }), name);
  }
}

// Between the thread that computes and the one that answers.
struct GenerationCall::Mailbox {
  void put(WritingEvent event) {
    {
      const std::lock_guard lock(mutex);
      events.push_back(std::move(event));
    }
    arrived.notify_one();
  }

  std::mutex mutex;
  std::condition_variable arrived;
  std::deque<WritingEvent> events;
  std::atomic<std::int64_t> reused = 0;  // tokens of prompts that were not read again
};

GenerationCall::GenerationCall(WritingRequest request, WritingPlace place)
    : request_(std::move(request)), place_(std::move(place)), mailbox_(std::make_shared<Mailbox>()) {
  using Kind = WritingEvent::Kind;
  BatchRequest& own = *request_.batch;
  // The session lives as long as the request, whose options refer to it.
  const auto session = request_.session;
  own.on_prompt = [box = mailbox_, session](std::size_t prompt, const std::vector<ScoredToken>& scores) {
    box->put({.kind = Kind::kPrompt, .row = prompt, .scores = scores});
  };
  own.on_reuse = [box = mailbox_](std::size_t, std::int64_t tokens) { box->reused += tokens; };
  own.on_token = [box = mailbox_](std::size_t row, const ScoredToken& token) {
    box->put({.kind = Kind::kToken, .row = row, .token = token});
  };
  own.on_end = [box = mailbox_](std::size_t row, RowEnd end) {
    box->put({.kind = Kind::kEnd, .row = row, .end = end});
  };
  own.on_failure = [box = mailbox_](const std::string& message, bool is_its_fault) {
    box->put({.failure = ApiError(is_its_fault ? 400 : 503, message)});
  };
  bool taken = false;
  try {
    taken = request_.model->batch->submit(request_.batch);
  } catch (const Error& error) {
    throw ApiError(400, error.what());
  }
  if (!taken) throw ApiError(429, "too many requests wait; try again later", "", "queue_full");
  place_.thread.wake();
}

GenerationCall::~GenerationCall() {
  request_.batch->cancelled = true;
  place_.thread.wake();
}

std::int64_t GenerationCall::prompt_tokens() const {
  std::int64_t count = 0;
  for (const TokenIds& prompt : request_.batch->prompts) count += static_cast<std::int64_t>(prompt.size());
  return count;
}

std::int64_t GenerationCall::reused_tokens() const { return mailbox_->reused; }

std::optional<WritingEvent> GenerationCall::next() {
  if (ended_ == request_.rows()) return std::nullopt;
  for (;;) {
    place_.watch.check();
    std::unique_lock lock(mailbox_->mutex);
    mailbox_->arrived.wait_for(lock, RequestWatch::kInterval, [&] { return !mailbox_->events.empty(); });
    if (mailbox_->events.empty()) continue;
    WritingEvent event = std::move(mailbox_->events.front());
    mailbox_->events.pop_front();
    lock.unlock();
    if (event.failure) throw *event.failure;
    if (event.kind == WritingEvent::Kind::kEnd) ++ended_;
    if (event.kind == WritingEvent::Kind::kToken && !std::exchange(has_token_, true))
      place_.metrics.first_token(place_.watch.seconds());
    return event;
  }
}

}  // namespace zoo
