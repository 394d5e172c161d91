#include "apps/verbs/generate/generate_interactive.h"

#include <iostream>

#include "apps/command/arguments.h"
#include "apps/command/standard_input.h"
#include "apps/training/stop_signal.h"
#include "apps/verbs/generate/generated_text.h"
#include "data/base/error.h"
#include "models/generation/decoding_batch.h"
#include "models/model.h"

namespace zoo {
namespace {

class Conversation {
 public:
  Conversation(DecodingModel& model, const GenerateSession& session, GenerationOptions options, bool color)
      : model_(model), session_(session), color_(color), options_(std::move(options)) {}

  void reply_to(const std::string& line) {
    TokenIds ids = said_;
    const TokenIds next = encode(line);
    ids.insert(ids.end(), next.begin(), next.end());
    forget_beginning(ids);
    ++options_.sampling.seed;  // so that the same line gets another reply
    const GenerationResult result = stream_reply(model_, session_, options_, ids, color_);
    if (session_.has_encoder()) return;
    said_ = std::move(ids);
    const TextIds text_ids(session_);
    for (const TokenId id : result.ids[0])
      if (text_ids.contains(id)) said_.push_back(id);
  }

 private:
  TokenIds encode(const std::string& line) const {
    if (said_.empty()) {
      const auto ids = session_.tokenizer->encode(line, EncodeOptions{.with_offsets = false}).ids;
      return {ids.begin(), ids.end()};
    }
    const auto ids = session_.tokenizer->encode("\n" + line);
    return {ids.begin(), ids.end()};
  }

  void forget_beginning(TokenIds& ids) const {
    const std::int64_t limit = context_limit(model_.config(), options_.context);
    if (static_cast<std::int64_t>(ids.size()) <= limit) return;
    ids.erase(ids.begin(), ids.end() - std::max<std::int64_t>(1, limit / 2));
    std::cerr << "note: the model sees " << limit << " tokens at most; it now continues from the last "
              << ids.size() << "\n";
  }

  DecodingModel& model_;
  const GenerateSession& session_;
  bool color_;
  GenerationOptions options_;
  TokenIds said_;
};

}  // namespace

void answer_lines(const std::function<bool(const std::string&)>& answer) {
  LineReader lines("> ");
  for (;;) {
    const std::optional<std::string> line = lines.next();
    if (!line) return;
    try {
      if (!answer(*line)) return;
    } catch (const Error& error) {
      std::cout.flush();
      std::cerr << "error: " << flag_message(error) << "\n";
    }
    std::cout.flush();
  }
}

GenerationResult stream_reply(DecodingModel& model, const GenerateSession& session, GenerationOptions options,
                              const TokenIds& ids, bool color) {
  const StopSignal stop;
  options.interrupted = [] { return StopSignal::received() != 0; };
  options.keep_cache = true;  // a conversation begins alike in each turn
  RowPrinter printer(session, color);
  GenerationResult result = generate(model, {ids}, options, [&](const NewToken& token) {
    printer.print(token);
    std::cout.flush();
    return StopSignal::received() == 0;
  });
  printer.finish();
  print_timing(result);
  return result;
}

void run_interactive(DecodingModel& model, const GenerateSession& session, GenerationOptions options,
                     bool color) {
  Conversation conversation(model, session, std::move(options), color);
  answer_lines([&](const std::string& line) {
    if (!line.empty()) conversation.reply_to(line);
    return true;
  });
}

}  // namespace zoo
