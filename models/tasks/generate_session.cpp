#include "models/tasks/generate_session.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include <c10/util/Exception.h>
#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "models/tasks/encoding_batch.h"
#include "models/tasks/inference_loading.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

// The special token that the template writes after an answer; nothing if it writes none.
std::optional<TokenId> end_of_turn(const ChatFormat& format, const Tokenizer& tokenizer) {
  constexpr std::string_view kAnswer = "an answer";
  const ordered_json messages{{{"role", "user"}, {"content", "a question"}},
                              {{"role", "assistant"}, {"content", kAnswer}}};
  std::string prompt;
  try {
    prompt = format.prompt({{"messages", messages}});
  } catch (const Error&) {  // such as a template that asks for tools
    return std::nullopt;
  }
  const std::size_t answer = prompt.rfind(kAnswer);
  if (answer == std::string::npos) return std::nullopt;
  const std::size_t after = prompt.find_first_not_of(" \n", answer + kAnswer.size());
  if (after == std::string::npos) return std::nullopt;
  const TokenIds ids = tokenizer.encode(std::string_view(prompt).substr(after));
  const bool is_special = !ids.empty() && tokenizer.decode(std::span(ids).first(1)).empty();
  return is_special ? std::optional(ids[0]) : std::nullopt;
}

}  // namespace

GenerateSession open_generate_session(const CheckpointConfig& checkpoint, const GenerationConfig& config,
                                      const std::vector<std::string>& stop, TokenizerUse use) {
  GenerateSession session{checkpoint, defaults_of(config), nullptr, StopStrings(stop)};
  require_writes(checkpoint);
  if (!has_tokenizer(checkpoint.directory)) return session;
  std::unique_ptr<Tokenizer> tokenizer;
  try {
    tokenizer = load_tokenizer(checkpoint.directory, checkpoint.json.get());
  } catch (const Error& error) {
    if (use == TokenizerUse::kNeeded) throw;
    TORCH_WARN("no text, only ids: ", error.what());
    return session;
  }
  require_fit(*tokenizer, checkpoint.config, checkpoint.directory);
  session.tokenizer = std::move(tokenizer);
  return session;
}

void complete(GenerationOptions& options, const GenerateSession& session) {
  if (options.eos_token_ids.empty()) options.eos_token_ids = session.defaults.eos_token_ids;
  if (options.decoder_start_token_id < 0)
    options.decoder_start_token_id = decoder_start(session.defaults, session.checkpoint.config);
  if (session.stop.empty()) return;
  options.row_ends = [text_ids = TextIds(session), &stop = session.stop,
                      own = std::move(options.row_ends)](const TokenIds& ids) {
    if (own && own(ids)) return true;
    // Each token has at least one byte, except special tokens.
    const std::size_t enough = 2 * stop.longest() + 8;
    const std::size_t first = ids.size() > enough ? ids.size() - enough : 0;
    return stop.find(text_ids.text_after_others(ids, first)).has_value();
  };
}

std::string text_of_row(const TokenIds& ids, const GenerateSession& session) {
  const TextIds text_ids(session);
  std::string text = text_ids.text_of(ids);
  if (session.stop.empty()) return replace_invalid_utf8(text);
  // A stop string may begin with the space that the text has lost.
  const std::string added = text_ids.text_after_others(ids);
  const std::size_t lost = added.ends_with(text) ? added.size() - text.size() : 0;
  if (const auto stop = session.stop.find(lost > 0 ? added : text)) text.resize(std::max(*stop, lost) - lost);
  return replace_invalid_utf8(text);
}

bool TextIds::contains(TokenId id) const {
  return id >= 0 && id < tokenizer_.id_count() && std::find(ends_.begin(), ends_.end(), id) == ends_.end();
}

std::string TextIds::text_of(const TokenIds& ids, std::size_t first) const {
  return tokenizer_.decode(those_with_text(ids, first));
}

std::string TextIds::text_after_others(const TokenIds& ids, std::size_t first) const {
  TokenIds kept = those_with_text(ids, first);
  if (kept.empty()) return {};
  const std::string before = tokenizer_.decode(TokenIds{kept[0]});
  kept.insert(kept.begin(), kept[0]);
  const std::string text = tokenizer_.decode(kept);
  return text.starts_with(before) ? text.substr(before.size()) : text_of(ids, first);
}

TokenIds TextIds::those_with_text(const TokenIds& ids, std::size_t first) const {
  TokenIds kept(ids.begin() + static_cast<std::ptrdiff_t>(first), ids.end());
  std::erase_if(kept, [this](TokenId id) { return !contains(id); });
  return kept;
}

void add_end_tokens(GenerateSession& session, const ChatFormat& format) {
  for (const std::optional<TokenId> id :
       {session.tokenizer->eos_id(), end_of_turn(format, *session.tokenizer)}) {
    TokenIds& ends = session.defaults.eos_token_ids;
    if (id && std::find(ends.begin(), ends.end(), *id) == ends.end()) ends.push_back(*id);
  }
}

std::string RowText::push(TokenId id) {
  if (stopped_ || !ids_.contains(id)) return {};
  std::string text = session_.pieces ? (*session_.pieces)[static_cast<std::size_t>(id)] : decoder_.push(id);
  if (!started_) {
    // Some tokenizers drop a space at the beginning of a text; a stop string may begin with it.
    const std::string inside = session_.pieces ? text : ids_.text_after_others({id});
    started_ = !inside.empty();
    if (inside.starts_with(' ') && !session_.tokenizer->decode(TokenIds{id}).starts_with(' ')) {
      lost_ = 1;
      if (!session_.pieces) text.insert(0, 1, ' ');
    }
  }
  return release(text);
}

std::string RowText::release(const std::string& text) {
  held_ += text;
  const auto stop = session_.stop.find(held_);
  stopped_ = stop.has_value();
  const std::size_t undecided = std::max(session_.stop.undecided(held_), incomplete_utf8_tail(held_));
  return take(stop ? *stop : held_.size() - undecided);
}

std::string RowText::take(std::size_t count) {
  const std::size_t lost = std::min(lost_, count);
  const std::string text = replace_invalid_utf8(held_.substr(lost, count - lost));
  held_.erase(0, count);
  lost_ -= lost;
  return text;
}

std::string RowText::finish() {
  if (stopped_) return {};
  std::string text = release(decoder_.finish());
  if (!stopped_) text += take(held_.size());
  return text;
}

}  // namespace zoo
