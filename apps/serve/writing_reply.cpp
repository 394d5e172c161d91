#include "apps/serve/writing_reply.h"

#include <algorithm>
#include <random>

#include <nlohmann/json.hpp>

#include "apps/command/output.h"
#include "data/base/json.h"
#include "data/base/sizes.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

std::string event_of(const ordered_json& event) {
  const std::string name = event.contains("type") ? "event: " + event["type"].get<std::string>() + "\n" : "";
  return name + "data: " + json_text(event) + "\n\n";
}

ordered_json usage_of(const GenerationCall& call, std::int64_t new_tokens) {
  return {{"prompt_tokens", call.prompt_tokens()},
          {"completion_tokens", new_tokens},
          {"total_tokens", call.prompt_tokens() + new_tokens},
          {"prompt_tokens_details", {{"cached_tokens", call.reused_tokens()}}}};
}

// The texts that are to be written, after what they continue.
std::vector<RowText> texts_of(const WritingRequest& request) {
  std::vector<RowText> texts(request.rows(), RowText(*request.session));
  for (std::size_t row = 0; request.continues && row < texts.size(); ++row)
    texts[row].push_given(request.batch->prompts[row / request.samples()].back());
  return texts;
}

// Waits for all rows.
std::vector<WrittenRow> collect_rows(GenerationCall& call) {
  using Kind = WritingEvent::Kind;
  std::vector<WrittenRow> rows(call.request().rows());
  std::vector<RowText> texts = texts_of(call.request());
  const std::size_t samples = call.request().samples();
  while (const auto event = call.next()) {
    if (event->kind == Kind::kPrompt) {
      for (std::size_t s = 0; s < samples; ++s) rows[event->row * samples + s].prompt_scores = event->scores;
    } else if (event->kind == Kind::kToken) {
      rows[event->row].text += texts[event->row].push(event->token.id);
      rows[event->row].tokens.push_back(event->token);
    } else {
      rows[event->row].end = event->end;
      rows[event->row].text += texts[event->row].finish();
    }
  }
  return rows;
}

// The rows that are answered: all, or of each prompt's the likeliest by the mean of their tokens, best first.
std::vector<std::size_t> returned_rows(const WritingRequest& request, const std::vector<WrittenRow>& rows) {
  std::vector<std::size_t> order = indices_below(rows.size()), returned;
  if (request.returned == 0) return order;
  std::vector<double> means;
  for (const WrittenRow& row : rows) {
    double sum = 0;
    for (const ScoredToken& token : row.tokens) sum += token.log_probability;
    means.push_back(sum / static_cast<double>(std::max<std::size_t>(1, row.tokens.size())));
  }
  for (std::size_t begin = 0; begin < rows.size(); begin += request.samples()) {
    const auto first = order.begin() + static_cast<std::ptrdiff_t>(begin);
    std::stable_sort(first, first + static_cast<std::ptrdiff_t>(request.samples()),
                     [&](std::size_t a, std::size_t b) { return means[a] > means[b]; });
    returned.insert(returned.end(), first, first + static_cast<std::ptrdiff_t>(request.returned));
  }
  return returned;
}

// Sends the events of a call until it ends or the client leaves.
void send_events(const WritingAnswer& answer, GenerationCall& call, StreamWords& words,
                 const std::function<bool(std::string_view)>& write) {
  using Kind = WritingEvent::Kind;
  std::vector<RowText> texts = texts_of(call.request());
  const bool scores = call.request().batch->likeliest.has_value();
  std::int64_t new_tokens = 0;
  const auto send = [&](const ordered_json& event) {
    if (!write(event_of(event))) throw ClientLeft();
  };
  const auto send_words = [&] {
    for (const ordered_json& event : std::exchange(words.events, {})) send(event);
  };
  words.open();
  send_words();
  while (const auto event = call.next()) {
    RowText& row = texts[event->row];
    if (event->kind == Kind::kToken) {
      ++new_tokens;
      const std::string text = row.push(event->token.id);
      if (!text.empty() || scores) words.add(event->row, text, scores ? &event->token : nullptr);
    } else if (event->kind == Kind::kEnd) {
      const std::string rest = row.finish();
      if (!rest.empty()) words.add(event->row, rest, nullptr);
      words.end(event->row, event->end, row.stop());
    }
    send_words();
  }
  const bool is_closed = words.close(new_tokens);
  send_words();
  if (is_closed) return;
  if (call.request().include_usage) {
    ordered_json event = answer.envelope(ordered_json::array());
    event["usage"] = usage_of(call, new_tokens);
    send(event);
  }
  write("data: [DONE]\n\n");
}

}  // namespace

ordered_json WritingAnswer::envelope(ordered_json choices) const {
  return {{"id", id},
          {"object", object},
          {"created", created},
          {"model", model},
          {"choices", std::move(choices)}};
}

ordered_json WritingAnswer::chunk(ordered_json choice) const {
  return envelope(ordered_json::array({std::move(choice)}));
}

WebReply stream_of(std::shared_ptr<const WritingAnswer> answer, std::shared_ptr<GenerationCall> call,
                   std::shared_ptr<StreamWords> words) {
  WebReply reply{.type = "text/event-stream", .headers = {{"Cache-Control", "no-cache"}}};
  reply.stream = [answer = std::move(answer), call = std::move(call),
                  words = std::move(words)](const auto& write) {
    const auto fail = [&](const ApiError& error) {
      if (!answer->writing.stream) throw error;
      if (!words->fail(error)) return void(write("data: " + error.json() + "\n\ndata: [DONE]\n\n"));
      for (const ordered_json& event : words->events) write(event_of(event));
    };
    try {
      send_events(*answer, *call, *words, write);
    } catch (const ApiError& error) {
      fail(error);
    } catch (const ClientLeft&) {
      if (!answer->writing.stream) throw;  // of a stream, nobody listens
    } catch (const std::exception& error) {
      fail(ApiError(500, plain_message(error)));
    }
  };
  return reply;
}

WebReply reply_of(const std::shared_ptr<const WritingAnswer>& answer, const WritingPlace& place,
                  std::shared_ptr<ChoiceWords> words) {
  auto call = std::make_shared<GenerationCall>(answer->writing, place);
  if (answer->writing.stream) return stream_of(answer, std::move(call), std::move(words));
  const std::vector<WrittenRow> rows = collect_rows(*call);
  ordered_json choices = ordered_json::array();
  std::size_t count = 0;
  for (const std::size_t row : returned_rows(answer->writing, rows)) {
    choices.push_back(words->choice_of(row, rows[row]));
    choices.back()["index"] = choices.size() - 1;
  }
  for (const WrittenRow& row : rows) count += row.tokens.size();
  ordered_json reply = answer->envelope(std::move(choices));
  reply["usage"] = usage_of(*call, static_cast<std::int64_t>(count));
  return {.body = json_text(reply)};
}

std::string new_reply_id(const std::string& prefix) {
  std::random_device device;  // no id can be told from others
  return prefix + format_text("%08x%08x", device(), device());
}

std::string bytes_of_token(TokenId id, const Tokenizer& tokenizer) {
  if (id >= tokenizer.vocab_size()) return {};  // a padded vocabulary
  return tokenizer.decode_with_special_tokens(TokenIds{id});
}

bool WritingAnswer::is_in_text(TokenId id) const {
  const std::vector<std::string>& all = writing.model->token_bytes();
  const auto place = static_cast<std::size_t>(id);
  return place < all.size() && !all[place].empty();
}

std::string WritingAnswer::bytes_of(TokenId id) const {
  return is_in_text(id) ? writing.model->token_bytes()[static_cast<std::size_t>(id)]
                        : bytes_of_token(id, tokenizer());
}

}  // namespace zoo
