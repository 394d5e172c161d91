#include "models/generation/generate.h"

#include <algorithm>
#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/command/standard_streams.h"
#include "apps/compute/compute.h"
#include "apps/training/stop_signal.h"
#include "apps/verbs/generate/generate_flags.h"
#include "apps/verbs/generate/generated_text.h"
#include "apps/verbs/verbs.h"
#include "models/generation/decoding_batch.h"

namespace zoo {
namespace {

constexpr std::string_view kBetweenSamples = "---------------\n";

// Streams the first row; prints the other rows, generated in the same batch, when they are complete.
GenerationResult print_text(DecodingModel& model, const std::vector<TokenIds>& prompts,
                            const GenerationOptions& options, const GenerateSession& session, bool color) {
  const bool watched = is_read_along();
  const auto begin = [&](std::size_t prompt) {
    RowPrinter printer(session, color);
    // The output of an encoder-decoder does not continue its input, so the prompt is not printed.
    if (!session.has_encoder()) printer.print_given(prompts[prompt]);
    return printer;
  };
  // Begun with the first token, so that options that do not fit the model print no prompt.
  std::optional<RowPrinter> first;
  const GenerationResult result = generate(model, prompts, options, [&](const NewToken& token) {
    if (token.row != 0) return true;
    if (!first) first.emplace(begin(0));
    first->print(token);
    if (watched) std::cout.flush();
    return true;
  });
  if (!first) first.emplace(begin(0));
  first->finish();
  const std::size_t rows_a_prompt = result.ids.size() / prompts.size();
  const bool known = !result.log_probabilities.empty();
  for (std::size_t row = 1; row < result.ids.size(); ++row) {
    std::cout << kBetweenSamples;
    RowPrinter printer = begin(row / rows_a_prompt);
    for (std::size_t i = 0; i < result.ids[row].size(); ++i)
      printer.print({row, result.ids[row][i], known ? result.log_probabilities[row][i] : 0});
    printer.finish();
  }
  return result;
}

// --interactive: with each line a decoder continues all that was said; an encoder-decoder answers it alone.
struct Continuation {
  DecodingModel& model;
  const GenerateSession& session;
  GenerationOptions options;
  std::optional<std::int64_t> max_length;  // of what was said and the reply, in tokens
  bool color;
  TokenIds said = {};

  void reply_to(const std::string& line) {
    // Special tokens are those of the beginning alone.
    const Tokenizer& tokenizer = *session.tokenizer;
    const TokenIds next = said.empty() ? tokenizer.encode(line, EncodeOptions{.with_offsets = false}).ids
                                       : tokenizer.encode("\n" + line);
    TokenIds ids = said;
    ids.insert(ids.end(), next.begin(), next.end());
    forget_beginning(ids);
    if (max_length) options.max_new_tokens = *max_length - static_cast<std::int64_t>(ids.size());
    ++options.sampling.seed;  // so that the same line gets another reply
    const GenerationResult result = stream_reply(model, session, options, ids, color);
    if (session.has_encoder()) return;
    said = std::move(ids);
    const TextIds text_ids(session);
    for (const TokenId id : result.ids[0])
      if (text_ids.contains(id)) said.push_back(id);
  }

  void forget_beginning(TokenIds& ids) const {
    std::int64_t limit = context_limit(model.config(), options.context);
    if (max_length) limit = std::min(limit, std::max<std::int64_t>(1, *max_length - 1));
    if (static_cast<std::int64_t>(ids.size()) <= limit) return;
    ids.erase(ids.begin(), ids.end() - std::max<std::int64_t>(1, limit / 2));
    std::cerr << "note: the model sees " << limit << " tokens at most; it now continues from the last "
              << ids.size() << "\n";
  }
};

}  // namespace

int run_generate(const Arguments& arguments) {
  GenerateFlags flags;
  if (!parse_generate_flags(arguments, flags)) return 0;
  apply_threads(flags.compute);
  const GenerateSession session = open_session(flags);
  const std::vector<TokenIds> prompts =
      flags.interactive ? std::vector<TokenIds>() : prompts_of(flags, session);
  GenerationOptions options = options_of(flags, session, prompts);
  const std::unique_ptr<DecodingModel> model = load_decoding_model(session.checkpoint, flags.compute);
  const std::unique_ptr<DecodingModel> draft = load_draft(flags);
  options.draft = draft.get();
  if (flags.interactive) {
    Continuation conversation{*model, session, options,
                              session.has_encoder() ? std::nullopt : flags.max_length, flags.color};
    answer_lines([&](const std::string& line) {
      if (!line.empty()) conversation.reply_to(line);
      return true;
    });
    return 0;
  }
  options.interrupted = [] { return StopSignal::received() != 0 || reader_left(); };
  if (flags.json) {
    print_json(generate(*model, prompts, options), session);
    return 0;
  }
  const StopSignal stop;
  const GenerationResult result = session.tokenizer
                                      ? print_text(*model, prompts, options, session, flags.color)
                                      : generate(*model, prompts, options);
  if (!session.tokenizer)
    for (const TokenIds& row : result.ids) std::cout << nlohmann::json(row).dump() << "\n";
  print_timing(result);
  return StopSignal::received() == 0 ? 0 : 128 + StopSignal::received();
}

}  // namespace zoo
