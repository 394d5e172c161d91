#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "apps/serve/endpoints/endpoints.h"
#include "apps/serve/writing_reply.h"
#include "data/base/error.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMostPrompts = 128;
constexpr std::int64_t kMostLikeliest = 20, kUsualTokens = 16;

// A completion's prompts as texts, which "echo" repeats.
struct Completion : WritingAnswer {
  std::vector<std::string> prompts;
  bool echo = false, logprobs = false;
};

// Text before and after a gap that the model fills (Bavarian et al., 2022, "Efficient training of language
// models to fill in the middle"), in the order prefix, suffix, middle.
std::string text_with_gap(const Tokenizer& tokenizer, const std::string& prefix, const std::string& suffix) {
  constexpr std::array<std::array<const char*, 3>, 3> kMarkers{{
      {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},  // Qwen, CodeGemma
      {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},        // StarCoder, Granite
      {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},  // DeepSeek
  }};
  const auto is_token = [&](const std::string& marker) {
    try {
      const TokenIds ids = tokenizer.encode(marker);
      return ids.size() == 1 && tokenizer.token_text(ids[0]) == marker;
    } catch (const Error&) {  // it has a character that the vocabulary does not know
      return false;
    }
  };
  for (const auto& markers : kMarkers)
    if (std::ranges::all_of(markers, is_token)) return markers[0] + prefix + markers[1] + suffix + markers[2];
  RequestFields::refuse("suffix",
                        "is not for this model, whose vocabulary has no markers of a gap to fill in",
                        "model_not_supported");
}

void add_prompt(Completion& completion, const TextOrIds& prompt, const std::string& suffix) {
  if (const auto* text = std::get_if<std::string>(&prompt)) {
    completion.prompts.push_back(*text);
    const std::string read = suffix.empty() ? *text : text_with_gap(completion.tokenizer(), *text, suffix);
    try {
      completion.writing.batch->prompts.push_back(
          completion.tokenizer().encode(read, EncodeOptions{.with_offsets = false}).ids);
    } catch (const Error& error) {
      RequestFields::refuse("prompt", std::string("cannot be read: ") + error.what());
    }
  } else {
    if (!suffix.empty()) RequestFields::refuse("suffix", "needs a prompt that is a text");
    const TokenIds& ids = std::get<TokenIds>(prompt);
    for (const TokenId id : ids)
      if (id >= completion.writing.session->vocab_size())
        RequestFields::refuse("prompt",
                              "has the id " + std::to_string(id) + ", which is outside the vocabulary");
    TokenIds known = ids;
    std::erase_if(known, [&](TokenId id) { return id >= completion.tokenizer().vocab_size(); });
    completion.prompts.push_back(replace_invalid_utf8(completion.tokenizer().decode(known)));
    completion.writing.batch->prompts.push_back(ids);
  }
  if (completion.writing.batch->prompts.back().empty())
    RequestFields::refuse("prompt", "is empty: there is nothing to continue");
}

Completion read_completion(RequestFields& fields, const ServedModel& served, const ServeOptions& options) {
  Completion completion{{.id = new_reply_id("cmpl-"),
                         .object = "text_completion",
                         .model = served.name,
                         .writing = read_writing_request(fields, served, served.writer().session)}};
  constrain(completion.writing);
  BatchRequest& batch = *completion.writing.batch;
  completion.writing.continues = true;
  completion.echo = fields.flag("echo").value_or(false);
  batch.likeliest = fields.integer("logprobs", 0, kMostLikeliest);
  completion.logprobs = batch.likeliest.has_value();
  batch.scores_prompt = completion.logprobs && completion.echo;
  const std::int64_t best_of = fields.integer("best_of", 1, kMostSamples).value_or(batch.samples);
  if (best_of < batch.samples) RequestFields::refuse("best_of", "must be at least 'n'");
  if (best_of > batch.samples) {
    if (completion.writing.stream) RequestFields::refuse("best_of", "above 'n' cannot be streamed");
    completion.writing.returned = completion.writing.samples();
    batch.samples = best_of;
    batch.likeliest = batch.likeliest.value_or(0);
  }
  const std::string suffix = fields.text("suffix").value_or("");
  if (!suffix.empty() && completion.echo) RequestFields::refuse("suffix", "is not supported with 'echo'");
  for (const TextOrIds& prompt : fields.texts_or_ids("prompt", kMostPrompts))
    add_prompt(completion, prompt, suffix);
  const auto length = read_length(fields, "max_tokens", completion.echo ? 0 : 1);
  fields.refuse_others();
  const std::int64_t most = options.most_new_tokens;
  const std::int64_t usual = most > 0 ? std::min(most, kUsualTokens) : kUsualTokens;
  set_length(completion.writing, length.value_or(usual), "max_tokens", most);
  return completion;
}

// OpenAI's four lists of a row. An echoed prompt's first token has no probability.
class LogProbs {
 public:
  explicit LogProbs(const WritingAnswer& answer) : answer_(answer) {}

  void add(TokenId id, const ScoredToken* scores) {
    const std::string bytes = answer_.bytes_of(id), text = replace_invalid_utf8(bytes);
    json_["tokens"].push_back(text);
    json_["token_logprobs"].push_back(scores != nullptr ? ordered_json(scores->log_probability)
                                                        : ordered_json());
    ordered_json likeliest;  // null for the first token
    if (scores != nullptr) {
      likeliest = ordered_json::object();
      for (const auto& [other, value] : scores->likeliest) {
        const std::string name = replace_invalid_utf8(answer_.bytes_of(other));
        if (!likeliest.contains(name)) likeliest[name] = value;
      }
      if (!likeliest.empty() && !likeliest.contains(text)) likeliest[text] = scores->log_probability;
    }
    json_["top_logprobs"].push_back(likeliest);
    // A token may begin within a character, or leave one incomplete for ever: U+FFFD in the text.
    const bool leaves = !begun_.empty() && !bytes.empty() && !continues_character(bytes[0]);
    json_["text_offset"].push_back(offset_ + (leaves ? 1 : 0));
    if (!answer_.is_in_text(id)) return;
    begun_ += bytes;
    const std::size_t size = begun_.size() - incomplete_utf8_tail(begun_);
    offset_ += count_characters(replace_invalid_utf8(begun_.substr(0, size)));
    begun_.erase(0, size);
  }

  void add_prompt(const TokenIds& prompt, const std::vector<ScoredToken>& scores, const std::string& text) {
    for (std::size_t i = 0; i < prompt.size(); ++i) {
      const bool at_begin = offset_ == 0;
      add(prompt[i], i > 0 && i <= scores.size() ? &scores[i - 1] : nullptr);
      // The space that the tokenizer has put before the text.
      if (at_begin && offset_ > 0 && answer_.bytes_of(prompt[i]).starts_with(' ') && !text.starts_with(' '))
        --offset_;
    }
  }

  // The lists since the last time; the offsets go on.
  ordered_json take() { return std::exchange(json_, no_tokens()); }

 private:
  static ordered_json no_tokens() {
    const ordered_json none = ordered_json::array();
    return {{"tokens", none}, {"token_logprobs", none}, {"top_logprobs", none}, {"text_offset", none}};
  }

  const WritingAnswer& answer_;
  ordered_json json_ = no_tokens();
  std::size_t offset_ = 0;  // characters before the next token
  std::string begun_;       // bytes of one that is not complete
};

ordered_json choice(std::size_t row, const std::string& text, ordered_json logprobs, ordered_json reason) {
  return {{"text", text},
          {"index", row},
          {"logprobs", std::move(logprobs)},
          {"finish_reason", std::move(reason)}};
}

struct CompletionWords : ChoiceWords {
  explicit CompletionWords(std::shared_ptr<const Completion> given)
      : completion(std::move(given)), lists(completion->writing.rows(), LogProbs(*completion)) {}

  void open() override {
    if (!completion->echo || completion->writing.batch->scores_prompt) return;
    for (std::size_t row = 0; row < lists.size(); ++row)
      tell(row, completion->prompts[row / completion->writing.samples()]);
  }

  void add(std::size_t row, const std::string& text, const ScoredToken* token) override {
    ordered_json logprobs;
    if (token != nullptr) {
      lists[row].add(token->id, token);
      logprobs = lists[row].take();
    }
    tell(row, text, std::move(logprobs));
  }

  void end(std::size_t row, RowEnd ended, std::string_view) override {
    tell(row, "", nullptr, finish_reason(ended));
  }

  ordered_json choice_of(std::size_t row, const WrittenRow& written) override {
    const WritingRequest& writing = completion->writing;
    const TokenIds& prompt = writing.batch->prompts[row / writing.samples()];
    const std::string echoed = completion->echo ? completion->prompts[row / writing.samples()] : "";
    ordered_json logprobs;
    if (completion->logprobs) {
      if (completion->echo) lists[row].add_prompt(prompt, written.prompt_scores, echoed);
      for (const ScoredToken& token : written.tokens) lists[row].add(token.id, &token);
      logprobs = lists[row].take();
    }
    return choice(row, echoed + written.text, std::move(logprobs), finish_reason(written.end));
  }

  void tell(std::size_t row, const std::string& text, ordered_json logprobs = nullptr,
            ordered_json reason = nullptr) {
    events.push_back(completion->chunk(choice(row, text, std::move(logprobs), std::move(reason))));
  }

  std::shared_ptr<const Completion> completion;
  std::vector<LogProbs> lists;  // of the rows
};

}  // namespace

WebReply answer_completion(ApiCall& call) {
  const auto completion =
      std::make_shared<const Completion>(read_completion(call.fields, call.served, call.state.options));
  if (completion->writing.stream && completion->writing.batch->scores_prompt)
    RequestFields::refuse("logprobs", "of an echoed prompt cannot be streamed");
  return reply_of(completion, call.state.writing_place(call.request),
                  std::make_shared<CompletionWords>(completion));
}

}  // namespace zoo
