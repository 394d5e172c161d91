#include "apps/generate_interactive.h"

#include <iostream>

#include <unistd.h>

#include "apps/generated_text.h"
#include "apps/training/stop_signal.h"
#include "data/base/error.h"
#include "models/generation/growing_rows.h"

namespace zoo {
namespace {

class Conversation {
 public:
  Conversation(DecodingModel& model, const GenerateSession& session, const GenerateFlags& flags)
      : model_(model),
        session_(session),
        color_(flags.color),
        seed_(flags.compute.seed),
        options_(options_of(flags, session)) {}

  void reply_to(const std::string& line) {
    TokenIds ids = said_;
    const TokenIds next = encode(line);
    ids.insert(ids.end(), next.begin(), next.end());
    forget_beginning(ids);
    const StopSignal stop;
    options_.interrupted = [] { return StopSignal::received() != 0; };
    // Another reply to the same line shall be another one.
    options_.sampling.seed = static_cast<std::uint64_t>(seed_++);
    RowPrinter printer(session_, color_);
    const GenerationResult result = generate(model_, {ids}, options_, [&](const NewToken& token) {
      printer.print(token);
      std::cout.flush();
      return StopSignal::received() == 0;
    });
    printer.finish();
    print_timing(result);
    if (session_.has_encoder()) return;
    said_ = std::move(ids);
    const TextIds text_ids(session_);
    for (const std::int64_t id : result.ids[0]) {
      if (text_ids.contains(id)) said_.push_back(id);
    }
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
    const std::int64_t limit = context_limit(model_.config());
    if (static_cast<std::int64_t>(ids.size()) <= limit) return;
    ids.erase(ids.begin(), ids.end() - std::max<std::int64_t>(1, limit / 2));
    std::cerr << "note: the model sees " << limit << " tokens; what was said before the last " << ids.size()
              << " is forgotten\n";
  }

  DecodingModel& model_;
  const GenerateSession& session_;
  bool color_;
  std::int64_t seed_;
  GenerationOptions options_;
  TokenIds said_;
};

}  // namespace

void run_interactive(DecodingModel& model, const GenerateSession& session, const GenerateFlags& flags) {
  Conversation conversation(model, session, flags);
  const bool watched = ::isatty(STDIN_FILENO) == 1;
  std::string line;
  for (;;) {
    if (watched) std::cerr << "> " << std::flush;
    if (!std::getline(std::cin, line)) break;
    if (line.empty()) continue;
    try {
      conversation.reply_to(line);
    } catch (const Error& error) {
      std::cout.flush();
      std::cerr << "error: " << error.what() << "\n";
    }
    std::cout.flush();
  }
  if (watched) std::cerr << "\n";
}

}  // namespace zoo
