#include <iostream>

#include <ATen/ops/softmax.h>
#include <nlohmann/json.hpp>

#include "apps/command/flags.h"
#include "apps/command/output.h"
#include "apps/hub/find_model.h"
#include "apps/verbs/text/text_input.h"
#include "apps/verbs/text/text_model.h"
#include "apps/verbs/verbs.h"
#include "data/base/error.h"
#include "data/base/json_text.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

struct FillMaskFlags {
  std::filesystem::path model;
  TextFlags text;
  std::int64_t top_k = 5;
  bool json = false;
  PackedWeights weights;
  ComputeOptions compute;
};

bool read_flags(const Arguments& arguments, FillMaskFlags& values) {
  Flags flags(arguments.command,
              "Predicts the words at the mask tokens of a text with a masked language model.");
  add_model_flag(flags, values.model);
  add_text_flags(flags, values.text);
  flags.add("top_k", values.top_k, "number of predictions per mask").at_least(1);
  flags.add("json", values.json, "print one JSON object per text instead of a table");
  values.weights.add_to(flags);
  flags.add_compute(values.compute);
  flags.example("tzoo fill-mask --model bert-base-uncased --text \"Paris is the [MASK] of France.\"");
  return flags.parse(arguments);
}

struct Guess {
  TokenId id;
  float probability;
};

// The most probable tokens for each mask of a text.
std::vector<std::vector<Guess>> guesses_of(const TextModel& model, const Encoding& encoding, TokenId mask,
                                           std::int64_t top_k) {
  const Encoding* const batch[] = {&encoding};
  const at::Tensor logits =
      model.model->forward(batch_of(model, batch)).logits[0].to(at::kFloat).cpu();  // [T, V]
  const std::int64_t known = model.tokenizer->vocab_size();
  std::vector<std::vector<Guess>> all;
  for (std::size_t i = 0; i < encoding.size(); ++i) {
    if (encoding.ids[i] != mask) continue;
    const at::Tensor probabilities = at::softmax(logits[static_cast<std::int64_t>(i)], 0).slice(0, 0, known);
    const auto [values, ids] = probabilities.topk(std::min(top_k, known));
    std::vector<Guess>& guesses = all.emplace_back();
    for (std::int64_t k = 0; k < values.numel(); ++k) {
      guesses.push_back({static_cast<TokenId>(ids[k].item<std::int64_t>()), values[k].item<float>()});
    }
  }
  return all;
}

// The text with one mask replaced by `guess`. Special tokens are left out if there is no other mask to show.
std::string filled(const TextModel& model, const Encoding& encoding, std::size_t which, TokenId mask,
                   TokenId guess) {
  TokenIds ids = encoding.ids;
  std::size_t seen = 0;
  for (TokenId& id : ids) {
    if (id == mask && seen++ == which) id = guess;
  }
  // A byte-level token may be half a character.
  return replace_invalid_utf8(seen > 1 ? model.tokenizer->decode_with_special_tokens(ids)
                                       : model.tokenizer->decode(ids));
}

void print_table(const TextModel& model, const Encoding& encoding, TokenId mask,
                 const std::vector<std::vector<Guess>>& all) {
  Table table({number("probability"), {"token"}, {"text"}});
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const Guess& guess : all[i]) {
      std::array<char, 16> probability{};
      std::snprintf(probability.data(), probability.size(), "%.4f", static_cast<double>(guess.probability));
      table.row({probability.data(), model.tokenizer->token_text(guess.id),
                 filled(model, encoding, i, mask, guess.id)});
    }
  }
  table.print(std::cout);
}

void print_json(const TextModel& model, const std::string& text, const Encoding& encoding, TokenId mask,
                const std::vector<std::vector<Guess>>& all) {
  Json json;
  json["text"] = text;
  json["masks"] = Json::array();
  for (std::size_t i = 0; i < all.size(); ++i) {
    Json guesses = Json::array();
    for (const Guess& guess : all[i]) {
      Json entry;
      entry["token"] = model.tokenizer->token_text(guess.id);
      entry["id"] = guess.id;
      entry["score"] = guess.probability;
      entry["text"] = filled(model, encoding, i, mask, guess.id);
      guesses.push_back(entry);
    }
    json["masks"].push_back(guesses);
  }
  std::cout << json_text(json) << "\n";
}

}  // namespace

int run_fill_mask(const Arguments& arguments) {
  FillMaskFlags flags;
  if (!read_flags(arguments, flags)) return 0;
  const at::NoGradGuard no_grad;
  const TextModel model =
      load_text_model(read_checkpoint_config(flags.model), flags.compute, flags.weights, Head::kMaskedLm);
  const auto mask = model.tokenizer->special_id(SpecialToken::mask);
  if (!mask) throw Error("--model: the tokenizer in ", flags.model, " has no mask token");
  TextInput input(flags.text);
  for (auto texts = input.next(1); !texts.empty(); texts = input.next(1)) {
    const Encoding encoding =
        model.tokenizer->encode(texts[0], {.max_length = model.max_length(), .with_offsets = false});
    const auto all = guesses_of(model, encoding, *mask, flags.top_k);
    if (all.empty()) {
      throw Error("no ", model.tokenizer->token_text(*mask), " in the first ", model.max_length(),
                  " tokens of '", texts[0], "'");
    }
    if (flags.json) {
      print_json(model, texts[0], encoding, *mask, all);
    } else {
      print_table(model, encoding, *mask, all);
    }
  }
  return 0;
}

}  // namespace zoo
