#include "models/tasks/generation_fields.h"

#include <vector>

#include "data/base/error.h"

namespace zoo {
namespace {

std::vector<GenerationField> fields_of(GenerationSettings& settings) {
  GenerationOptions& options = settings.options;
  return {
      {"max_new_tokens", &options.max_new_tokens, at_least(1),
       "most tokens to generate per row; an end token stops earlier"},
      {"max_length", &settings.max_length, at_least(1),
       "maximum total length in tokens, prompt included (of an encoder-decoder: of its answer); "
       "'max_new_tokens' overrides it"},
      {"context", &options.context, at_least(0),
       "tokens that a decoder sees; a longer text goes on from the last half of them, so that the KV cache "
       "grows no more; 0: as many as its positions allow"},
      {"temperature", &settings.temperature, between(0, 1e6),
       "below 1 less random, above 1 more random, 0 greedy decoding; default: 0.8; 0 for beam search, whose "
       "candidates are drawn above 0"},
      {"top_k", &options.sampling.top_k, at_least(0),
       "top-k sampling: draw from the K most probable tokens; 0: off"},
      {"top_p", &options.sampling.top_p, between(0, 1),
       "nucleus sampling: draw from the most probable tokens that together reach this probability; 1: off"},
      {"min_p", &options.sampling.min_p, between(0, 1),
       "draw from tokens with at least this share of the highest probability; 0: off"},
      {"typical_p", &options.sampling.typical_p, FieldRange{.above = 0, .most = 1},
       "typical sampling: draw from the tokens whose information is closest to the entropy and that together "
       "reach this probability; 1: off"},
      {"repetition_penalty", &options.history.repetition_penalty, above(0),
       "make tokens that are already in the text less probable: positive logits are divided by this, "
       "negative ones multiplied; 1: off"},
      {"presence_penalty", &options.history.presence_penalty, between(-1e6, 1e6),
       "subtracted from the logit of a token that was generated before"},
      {"frequency_penalty", &options.history.frequency_penalty, between(-1e6, 1e6),
       "subtracted from a token's logit once for each time it was generated before"},
      {"no_repeat_ngram_size", &options.history.no_repeat_ngram_size, at_least(0),
       "never repeat N tokens in the same order; 0: off"},
      {"min_length", &options.history.min_length, at_least(0),
       "minimum total length in tokens, prompt included; 'min_new_tokens' overrides it"},
      {"min_new_tokens", &options.history.min_new_tokens, at_least(0), "minimum number of new tokens"},
      {"forced_bos_token_id", &options.history.forced_bos_token_id, at_least(0),
       "id of the token that must follow a row's start token"},
      {"num_beams", &options.beams.num_beams, between(1, BeamOptions::kMostBeams),
       "number of beams; 1: no beam search"},
      {"length_penalty", &options.beams.length_penalty, between(-1e3, 1e3),
       "a beam's score is divided by its length to this power: above 0 favours long texts"},
      {"num_return_sequences", &options.beams.num_return_sequences, at_least(1),
       "number of beams to return per prompt, best first"},
      {"num_beam_groups", &options.beams.num_beam_groups, at_least(1),
       "diverse beam search: number of groups that the beams are divided into"},
      {"diversity_penalty", &options.beams.diversity_penalty, at_least(0),
       "diverse beam search: subtracted from a token's score for each beam of an earlier group that chose it "
       "at the same step"},
      {"draft_tokens", &options.draft_tokens, at_least(1), "number of tokens drafted at a time"},
  };
}

}  // namespace

GenerationField field_of(GenerationSettings& settings, std::string_view name) {
  for (const GenerationField& field : fields_of(settings))
    if (field.name == name) return field;
  throw Error("generation has no field '", name, "'");
}

}  // namespace zoo
