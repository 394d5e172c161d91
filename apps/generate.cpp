#include "models/generation/generate.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <iterator>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "apps/command/flags.h"
#include "apps/torch_options.h"
#include "apps/training/run_directory.h"
#include "apps/training/stop_signal.h"
#include "apps/verbs.h"
#include "data/text_file.h"
#include "models/generation/generation_config.h"
#include "models/io/checkpoint.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/utf8.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

using Ids = std::vector<std::int64_t>;

constexpr std::string_view kBetweenSamples = "---------------\n";

struct GenerateFlags {
  fs::path model;
  std::optional<std::string> prompt, input_ids;
  std::int64_t num_samples = 1, max_new_tokens = 200, top_k = 200;
  double temperature = 0.8, top_p = 1.0;
  bool json = false;
  ComputeOptions compute;
};

bool parse(const Arguments& arguments, GenerateFlags& values) {
  Flags flags(arguments.command, "Continues a text, or ids, with a model; an encoder-decoder answers it.");
  flags.group("Input");
  flags.add("model", values.model, "checkpoint directory").placeholder("DIR").required();
  flags.add("prompt", values.prompt, "the text to continue; - reads standard input. Without it, a new line")
      .placeholder("TEXT|-|FILE:PATH");
  flags.add("input_ids", values.input_ids, "ids to continue instead, a list for each row")
      .placeholder("'[[1, 2], [3]]'");
  flags.group("Sampling");
  flags.add("max_new_tokens", values.max_new_tokens, "for each row; an end token stops it before")
      .at_least(1);
  flags.add("num_samples", values.num_samples, "continuations of each prompt").at_least(1);
  flags.add("temperature", values.temperature, "below 1 sharper, above 1 wilder; 0 takes the likeliest token")
      .between(0, 1e6);
  flags.add("top_k", values.top_k, "draw from the k likeliest tokens only; 0 is off").at_least(0);
  flags.add("top_p", values.top_p, "draw from the likeliest tokens that reach this probability; 1 is off")
      .between(0, 1);
  flags.group("Output");
  flags.add("json", values.json, "print new ids, their text and tokens per second as one JSON object");
  flags.add_compute(values.compute);
  flags.example("tzoo generate --model runs/kjv-char/final --prompt \"In the beginning\" --temperature 0.7");
  if (!flags.parse(arguments)) return false;
  if (values.prompt && values.input_ids) throw UsageError("--prompt and --input_ids: give one of them");
  return true;
}

std::vector<Ids> parse_ids(const std::string& text) {
  const auto refuse = [&]() -> Error {
    return Error("--input_ids: expected a list of lists of ids, such as [[1, 2], [3]], got '", text, "'");
  };
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_array() || json.empty()) throw refuse();
  std::vector<Ids> rows;
  for (const nlohmann::json& row : json) {
    if (!row.is_array()) throw refuse();
    rows.emplace_back();
    for (const nlohmann::json& id : row) {
      const bool fits = !id.is_number_unsigned() || id.get<std::uint64_t>() < (1ULL << 63);
      if (!id.is_number_integer() || !fits) throw refuse();
      rows.back().push_back(id.get<std::int64_t>());
    }
  }
  return rows;
}

// What a run works with.
struct Session {
  CheckpointConfig checkpoint;
  GenerationDefaults defaults;
  std::unique_ptr<Tokenizer> tokenizer;  // null: the directory has none
};

bool has_encoder(const Session& session) {
  return session.checkpoint.config.shape == Shape::kEncoderDecoder;
}

Ids encode(const Session& session, const std::string& text) {
  try {
    // With what the model has been trained to see around a text: T5's </s>, Llama's <s>.
    const auto ids = session.tokenizer->encode(text, EncodeOptions{.with_offsets = false}).ids;
    return {ids.begin(), ids.end()};
  } catch (const Error& error) {
    throw Error("--prompt: ", error.what());
  }
}

std::string read_prompt(const std::string& prompt) {
  constexpr std::string_view kFile = "FILE:";
  if (prompt == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  if (prompt.compare(0, kFile.size(), kFile) == 0) return read_text(prompt.substr(kFile.size()));
  return prompt;
}

// What a text begins with when nobody says: the model's own first token or, as nanoGPT's samples, a new line.
Ids default_prompt(const Tokenizer* tokenizer, const GenerationDefaults& defaults, std::int64_t vocab_size) {
  if (defaults.bos_token_id && *defaults.bos_token_id < vocab_size) return {*defaults.bos_token_id};
  if (tokenizer != nullptr) {
    try {
      if (const auto ids = tokenizer->encode("\n"); !ids.empty()) return {ids.begin(), ids.end()};
    } catch (const Error&) {  // a vocabulary without it
    }
    if (const auto id = tokenizer->eos_id()) return {*id};
  }
  throw UsageError("missing flag '--prompt' or '--input_ids': the model knows no token that begins a text");
}

// Ids can be continued although the zoo does not read the tokenizer beside the model; there is no text then.
std::unique_ptr<Tokenizer> open_tokenizer(const fs::path& directory, bool needed) {
  if (!has_tokenizer(directory)) return nullptr;
  try {
    return load_tokenizer(directory);
  } catch (const Error& error) {
    if (needed) throw;
    std::cerr << "note: ids only, without their text: " << error.what() << "\n";
    return nullptr;
  }
}

Session open_session(const fs::path& directory, bool needs_tokenizer) {
  if (!fs::exists(directory / "config.json") && RunDirectory(directory, 0).holds_run()) {
    throw Error("--model: ", directory,
                " is the directory of a run; a model is in its final/, best/ or checkpoints/");
  }
  Session session{read_checkpoint_config(directory), read_generation_defaults(directory), nullptr};
  const std::int64_t vocab_size = session.checkpoint.config.vocab_size;
  if (session.checkpoint.head != Head::kCausalLm && session.checkpoint.head != Head::kSeq2SeqLm) {
    throw Error(directory, ": a model with a ", name_of(session.checkpoint.head), " head does not generate");
  }
  session.tokenizer = open_tokenizer(directory, needs_tokenizer);
  if (session.tokenizer && session.tokenizer->vocab_size() > vocab_size) {
    throw Error(directory, ": the tokenizer has ", session.tokenizer->vocab_size(),
                " tokens, the model only ", vocab_size);
  }
  return session;
}

std::vector<Ids> prompts_of(const GenerateFlags& flags, const Session& session) {
  std::vector<Ids> prompts;
  if (flags.input_ids) {
    prompts = parse_ids(*flags.input_ids);
  } else if (flags.prompt && !session.tokenizer) {
    throw Error("--prompt: ", flags.model, " holds no tokenizer to read a text with; give --input_ids");
  } else if (flags.prompt) {
    prompts = {encode(session, read_prompt(*flags.prompt))};
  } else if (has_encoder(session)) {
    throw UsageError("missing flag '--prompt' or '--input_ids': there is nothing to read for the encoder");
  } else {
    prompts = {
        default_prompt(session.tokenizer.get(), session.defaults, session.checkpoint.config.vocab_size)};
  }
  std::vector<Ids> repeated;
  for (const Ids& prompt : prompts) {
    for (std::int64_t i = 0; i < flags.num_samples; ++i) repeated.push_back(prompt);
  }
  return repeated;
}

// Ids that have a text: no end token, and none of those that a model may have beyond its tokenizer's.
class TextIds {
 public:
  explicit TextIds(const Session& session)
      : ends_(session.defaults.eos_token_ids), vocab_size_(session.tokenizer->vocab_size()) {}

  bool contains(std::int64_t id) const {
    return id >= 0 && id < vocab_size_ && std::find(ends_.begin(), ends_.end(), id) == ends_.end();
  }

  std::vector<TokenId> of(const Ids& ids) const {
    std::vector<TokenId> kept;
    for (const std::int64_t id : ids) {
      if (contains(id)) kept.push_back(static_cast<TokenId>(id));
    }
    return kept;
  }

 private:
  Ids ends_;
  std::int64_t vocab_size_;
};

void print_json(const GenerationResult& result, const Session& session) {
  nlohmann::json json{{"ids", result.ids}, {"tokens_per_second", result.tokens_per_second()}};
  if (session.tokenizer) {
    const TextIds text_ids(session);
    json["text"] = nlohmann::json::array();
    for (const Ids& row : result.ids) {
      json["text"].push_back(replace_invalid_utf8(session.tokenizer->decode(text_ids.of(row))));
    }
  }
  std::cout << json.dump() << "\n";
}

// Prints one row's prompt and then its tokens as they come.
class RowPrinter {
 public:
  RowPrinter(const Session& session, const Ids& prompt) : text_ids_(session), decoder_(*session.tokenizer) {
    if (has_encoder(session)) return;  // what it writes does not continue what it reads
    for (const std::int64_t id : prompt) print(id);
  }

  void print(std::int64_t id) {
    if (text_ids_.contains(id)) std::cout << decoder_.push(static_cast<TokenId>(id));
  }

  void finish() { std::cout << decoder_.finish() << "\n"; }

 private:
  TextIds text_ids_;
  StreamDecoder decoder_;
};

void print_timing(const GenerationResult& result) {
  std::array<char, 128> line{};
  std::snprintf(line.data(), line.size(), "%lld tokens in %.2f s, %.0f tok/s\n",
                static_cast<long long>(result.token_count()), result.seconds_prefill + result.seconds_decode,
                result.tokens_per_second());
  std::cout.flush();
  std::cerr << line.data();
}

// The first row appears while it is made; the others, made beside it, follow.
GenerationResult print_text(Model& model, const std::vector<Ids>& prompts, const GenerationOptions& options,
                            const Session& session) {
  const bool watched = ::isatty(STDOUT_FILENO) == 1;
  RowPrinter first(session, prompts[0]);
  if (watched) std::cout.flush();
  const GenerationResult result = generate(model, prompts, options, [&](std::size_t row, std::int64_t id) {
    if (row == 0) first.print(id);
    if (row == 0 && watched) std::cout.flush();
    return StopSignal::received() == 0;
  });
  first.finish();
  for (std::size_t row = 1; row < prompts.size(); ++row) {
    std::cout << kBetweenSamples;
    RowPrinter printer(session, prompts[row]);
    for (const std::int64_t id : result.ids[row]) printer.print(id);
    printer.finish();
  }
  return result;
}

GenerationResult print_ids(Model& model, const std::vector<Ids>& prompts, const GenerationOptions& options) {
  const GenerationResult result = generate(
      model, prompts, options, [](std::size_t, std::int64_t) { return StopSignal::received() == 0; });
  for (const Ids& row : result.ids) std::cout << nlohmann::json(row).dump() << "\n";
  return result;
}

}  // namespace

int run_generate(const Arguments& arguments) {
  GenerateFlags flags;
  if (!parse(arguments, flags)) return 0;
  apply_threads(flags.compute);
  const Session session = open_session(flags.model, !flags.input_ids);
  const std::vector<Ids> prompts = prompts_of(flags, session);
  const LoadedModel loaded =
      load_model(flags.model, {.dtype = dtype_of(flags.compute), .device = device_of(flags.compute)});
  GenerationOptions options{.max_new_tokens = flags.max_new_tokens,
                            .sampling = {.temperature = flags.temperature,
                                         .top_k = flags.top_k,
                                         .top_p = flags.top_p,
                                         .seed = static_cast<std::uint64_t>(flags.compute.seed)},
                            .eos_token_ids = session.defaults.eos_token_ids};
  options.decoder_start_token_id = session.defaults.decoder_start_token_id.value_or(-1);
  if (flags.json) {
    print_json(generate(*loaded.model, prompts, options), session);
    return 0;
  }
  const StopSignal stop;
  const GenerationResult result = session.tokenizer ? print_text(*loaded.model, prompts, options, session)
                                                    : print_ids(*loaded.model, prompts, options);
  print_timing(result);
  return StopSignal::received() == 0 ? 0 : 128 + StopSignal::received();
}

}  // namespace zoo
