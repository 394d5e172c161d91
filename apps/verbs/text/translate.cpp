#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/command/flags.h"
#include "apps/verbs/text/text_input.h"
#include "apps/verbs/text/text_model.h"
#include "apps/verbs/verbs.h"
#include "data/base/error.h"
#include "data/base/json_text.h"
#include "models/generation/generate.h"
#include "models/generation/generation_config.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

struct TranslateFlags {
  std::filesystem::path model;
  TextFlags text;
  std::string prefix;
  std::int64_t max_new_tokens = 128, batch_size = 16;
  bool json = false;
  PackedWeights weights;
  ComputeOptions compute;
};

bool read_flags(const Arguments& arguments, TranslateFlags& values) {
  Flags flags(arguments.command,
              "Translates or summarises texts with an encoder-decoder such as T5, by greedy decoding.");
  flags.group("Input");
  flags.add("model", values.model, "checkpoint directory").placeholder("DIR").required();
  add_text_flags(flags, values.text);
  flags
      .add("prefix", values.prefix,
           "task put before each text, such as T5's \"translate English to German: \"")
      .placeholder("TEXT");
  flags.group("Output");
  flags
      .add("max_new_tokens", values.max_new_tokens,
           "most tokens to generate per text; an end token stops earlier")
      .at_least(1);
  flags.add("batch_size", values.batch_size, "texts per batch").at_least(1);
  flags.add("json", values.json, "print one JSON object per text instead of the new text alone");
  values.weights.add_to(flags);
  values.weights.add_cache_to(flags);
  flags.add_compute(values.compute);
  flags.example(
      "tzoo translate --model t5-small --prefix \"translate English to German: \" --text \"Good day.\"");
  return flags.parse(arguments);
}

std::vector<std::int64_t> prompt_of(const TextModel& model, const std::string& text) {
  const Encoding encoding = model.tokenizer->encode(text, {.with_offsets = false});
  if (encoding.ids.empty()) throw Error("there is nothing to translate in an empty text");
  return {encoding.ids.begin(), encoding.ids.end()};
}

std::string text_of(const TextModel& model, const std::vector<std::int64_t>& ids) {
  std::vector<TokenId> known;
  for (const std::int64_t id : ids) {
    // A model may have more rows of embeddings than its tokenizer has tokens.
    if (id < model.tokenizer->vocab_size()) known.push_back(static_cast<TokenId>(id));
  }
  return replace_invalid_utf8(model.tokenizer->decode(known));
}

}  // namespace

int run_translate(const Arguments& arguments) {
  TranslateFlags flags;
  if (!read_flags(arguments, flags)) return 0;
  require_utf8(flags.prefix, "--prefix");
  const TextModel model = load_text_model(flags.model, flags.compute, flags.weights, Head::kSeq2SeqLm);
  const std::unique_ptr<DecodingModel> decoder = decoding_model(model.model, flags.compute, flags.weights);
  const GenerationDefaults defaults = read_generation_defaults(flags.model);
  const GenerationOptions options{.max_new_tokens = flags.max_new_tokens,
                                  .sampling = {.temperature = 0},
                                  .eos_token_ids = defaults.eos_token_ids,
                                  .decoder_start_token_id = defaults.decoder_start_token_id.value_or(-1)};
  TextInput input(flags.text);
  const auto batch_size = static_cast<std::size_t>(flags.batch_size);
  for (auto texts = input.next(batch_size); !texts.empty(); texts = input.next(batch_size)) {
    std::vector<std::vector<std::int64_t>> prompts;
    for (const std::string& text : texts) prompts.push_back(prompt_of(model, flags.prefix + text));
    const GenerationResult result = generate(*decoder, prompts, options);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (!flags.json) {
        std::cout << text_of(model, result.ids[i]) << "\n";
        continue;
      }
      Json json;
      json["text"] = texts[i];
      json["translation"] = text_of(model, result.ids[i]);
      json["ids"] = result.ids[i];
      std::cout << json_text(json) << "\n";
    }
    std::cout.flush();
  }
  return 0;
}

}  // namespace zoo
