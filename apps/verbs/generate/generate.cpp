#include "models/generation/generate.h"

#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/command/standard_streams.h"
#include "apps/compute/compute.h"
#include "apps/training/stop_signal.h"
#include "apps/verbs/generate/generate_flags.h"
#include "apps/verbs/generate/generated_text.h"
#include "apps/verbs/verbs.h"

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
    run_interactive(*model, session, options, flags.max_length, flags.color);
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
