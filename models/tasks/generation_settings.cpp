#include "models/tasks/generation_settings.h"

#include <array>
#include <limits>

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "data/base/json.h"
#include "data/base/sizes.h"
#include "models/formats/config_reader.h"

namespace zoo {
namespace {

using nlohmann::json;
using Given = std::function<bool(std::string_view)>;

// The ids of a JSON list; nullopt if it is none.
std::optional<TokenIds> ids_of(const json& list) {
  if (!list.is_array()) return std::nullopt;
  TokenIds ids;
  for (const json& id : list) {
    // The library compares numbers beyond 63 bits as negative ones.
    using Limits = std::numeric_limits<TokenId>;
    const bool is_small = !id.is_number_unsigned() || id.get<std::uint64_t>() <= std::uint64_t{Limits::max()};
    if (!id.is_number_integer() || !is_small || id < Limits::min()) return std::nullopt;
    ids.push_back(id.get<TokenId>());
  }
  return ids;
}

std::optional<std::vector<TokenIds>> id_rows_of(const json& list) {
  if (!list.is_array() || list.empty()) return std::nullopt;
  std::vector<TokenIds> rows;
  for (const json& row : list) {
    const std::optional<TokenIds> ids = ids_of(row);
    if (!ids) return std::nullopt;
    rows.push_back(*ids);
  }
  return rows;
}

// A key of transformers' GenerationConfig that the zoo lacks.
struct Unsupported {
  const char* key;
  json off;                                               // the value that switches it off; null does, too
  enum { kAlways, kSampling, kBeams } changes = kAlways;  // the ways of choosing whose ids it changes
};
const std::array<Unsupported, 17> kUnsupported{{{"guidance_scale", 1.0},
                                                {"penalty_alpha", 0.0},
                                                {"epsilon_cutoff", 0.0, Unsupported::kSampling},
                                                {"eta_cutoff", 0.0, Unsupported::kSampling},
                                                {"top_h", nullptr, Unsupported::kSampling},
                                                {"encoder_repetition_penalty", 1.0},
                                                {"num_beam_groups", 1, Unsupported::kBeams},
                                                {"encoder_no_repeat_ngram_size", 0},
                                                {"sequence_bias", nullptr},
                                                {"exponential_decay_length_penalty", nullptr},
                                                {"remove_invalid_values", false, Unsupported::kBeams},
                                                {"force_words_ids", nullptr},
                                                {"constraints", nullptr},
                                                {"watermarking_config", nullptr},
                                                {"dola_layers", nullptr},
                                                {"token_healing", false},
                                                {"max_time", nullptr}}};

class Defaults {
 public:
  Defaults(const json& file, const std::string& path, const Given& given)
      : reader_(file, path), given_(given) {}

  void refuse_unsupported(const GenerationSettings& settings) const {
    const bool beams = settings.options.beams.num_beams > 1;
    const bool samples = reader_.get_bool("do_sample", false) && settings.temperature.value_or(0) > 0;
    for (const auto& [key, off, changes] : kUnsupported) {
      const bool matters =
          changes == Unsupported::kAlways || (changes == Unsupported::kBeams ? beams : samples);
      if (matters && !given_(key) && !reader_.is(key, off)) refuse(key, "which is not supported");
    }
  }

  bool says(const char* key) const { return reader_.has(key) && !given_(key); }

  void set(GenerationSettings& settings, std::initializer_list<const char*> keys) const {
    for (const char* key : keys) {
      if (!says(key)) continue;
      const GenerationField field = field_of(settings, key);
      const auto read = [&](auto* member) {
        const auto value = get(key, *member);
        if (!field.range.holds(static_cast<double>(value))) refuse(key, "expected " + words_of(field.range));
        *member = value;
      };
      std::visit(read, field.member);
    }
  }
  void set(const char* key, TokenIds& ids) const {
    if (!says(key)) return;
    const json& value = reader_.at(key);
    const std::optional<TokenIds> found = ids_of(value.is_array() ? value : json::array({value}));
    if (!found) refuse(key, "expected ids, such as [1, 2]");
    ids = *found;
  }

  // transformers reads the other keys only if do_sample is true. A file without it says nothing of sampling.
  void set_sampling(GenerationSettings& settings) const {
    if (!reader_.has("do_sample")) return;
    const bool samples = reader_.get_bool("do_sample", false);
    if (!given_("temperature")) settings.temperature = samples ? reader_.get_double("temperature", 1.0) : 0.0;
    if (!samples) return;
    if (!given_("top_k")) settings.options.sampling.top_k = get_count("top_k", kTheirTopK);
    set(settings, {"top_p", "min_p", "typical_p"});
  }

  void set_beams(GenerationSettings& settings) const {
    set(settings, {"num_beams"});
    if (settings.options.beams.num_beams < 2) return;
    set(settings, {"length_penalty", "num_return_sequences"});
    settings.options.beams.renormalize_logits = reader_.get_bool("renormalize_logits", false);
    if (!says("early_stopping")) return;
    if (reader_.at("early_stopping") == json("never")) {
      settings.options.beams.early_stopping = EarlyStopping::kNever;
    } else if (reader_.get_bool("early_stopping", false)) {
      settings.options.beams.early_stopping = EarlyStopping::kFull;
    }
  }

  void set_ends(GenerationSettings& settings) const {
    if (!given_("max_length")) set(settings, {"max_new_tokens"});
    const bool says_new_tokens = given_("max_new_tokens") || says("max_new_tokens");
    if (!says_new_tokens) set(settings, {"max_length"});
    if (!given_("min_length")) set(settings, {"min_new_tokens"});
    // In transformers even a min_new_tokens of 0 takes the place of min_length.
    if (!given_("min_new_tokens") && !says("min_new_tokens")) set(settings, {"min_length"});
    if (!says("stop_strings") || given_("stop")) return;
    const json& stop = reader_.at("stop_strings");
    for (const json& text : stop.is_array() ? stop : json::array({stop})) {
      if (!text.is_string()) reader_.refuse("stop_strings", "expected a text or a list of texts");
      settings.stop.push_back(text.get<std::string>());
    }
  }

  void set_history(GenerationSettings& settings) const {
    set(settings, {"repetition_penalty", "no_repeat_ngram_size", "forced_bos_token_id"});
    if (says("bad_words_ids")) {
      const std::optional<std::vector<TokenIds>> rows = id_rows_of(reader_.at("bad_words_ids"));
      if (!rows) refuse("bad_words_ids", "expected lists of ids, such as [[1, 2], [3]]");
      settings.options.history.bad_words = *rows;
    }
    set("suppress_tokens", settings.options.history.suppressed);
    set("begin_suppress_tokens", settings.options.history.suppressed_first);
    set("forced_eos_token_id", settings.options.history.forced_eos_token_ids);
  }

 private:
  static constexpr std::int64_t kTheirTopK = 50;  // of a file that samples and does not say it

  [[noreturn]] void refuse(const char* key, const std::string& why) const {
    try {
      reader_.refuse(key, why);
    } catch (const Error& error) {
      throw FieldError(error.what(), "; ", Field{"generation_defaults"}, " ours leaves the file out");
    }
  }

  double get(const char* key, double) const { return reader_.get_double(key, 0); }
  double get(const char* key, std::optional<double>) const { return reader_.get_double(key, 0); }
  std::int64_t get(const char* key, std::int64_t) const { return get_count(key, 0); }
  std::int64_t get(const char* key, std::optional<std::int64_t>) const { return get_count(key, 0); }

  std::int64_t get_count(const char* key, std::int64_t fallback) const {
    const std::int64_t count = reader_.get_int(key, fallback);
    if (count > kLargestGivenCount || count < -kLargestGivenCount)
      refuse(key, "expected an integer of at most " + std::to_string(kLargestGivenCount));
    return count;
  }

  ConfigReader reader_;
  const Given& given_;
};

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
      {"draft_tokens", &options.draft_tokens, at_least(1), "number of tokens drafted at a time"},
      {"prompt_lookup_num_tokens", &options.prompt_lookup_num_tokens, at_least(0),
       "without a draft model: most tokens to draft from the text so far, where its last tokens stood "
       "before; faster for answers that repeat their prompt, with the same distribution; 0: off"},
  };
}

}  // namespace

GenerationOptions GenerationSettings::generation_options() const {
  GenerationOptions chosen = options;
  const bool beams = chosen.beams.num_beams > 1;
  chosen.sampling.temperature = temperature.value_or(beams ? 0 : 0.8);
  chosen.beams.sample = beams && chosen.sampling.temperature > 0;
  return chosen;
}

std::int64_t GenerationSettings::new_token_limit(std::int64_t longest_prompt) const {
  if (!max_length) return options.max_new_tokens;
  if (*max_length > longest_prompt) return *max_length - longest_prompt;
  throw FieldError(Field{"max_length"}, " ", *max_length, " leaves no new token after ", longest_prompt,
                   " tokens; ", Field{"max_new_tokens"}, " counts new ones alone");
}

void apply_generation_config(GenerationSettings& settings, const GenerationConfig& config,
                             const Given& given) {
  const Defaults defaults(*config.values, config.path.string(), given);
  const bool way_asked = given("temperature") || given("top_k") || given("top_p") || given("min_p") ||
                         given("typical_p") || given("draft_model") || given("prompt_lookup_num_tokens") ||
                         given("num_samples");
  const bool greedy_asked = given("temperature") && settings.temperature == 0.0;
  const bool beams_asked = given("num_beams") && settings.options.beams.num_beams > 1;
  if (!way_asked || greedy_asked || given("num_beams")) defaults.set_beams(settings);
  if (!greedy_asked && (way_asked || !beams_asked)) defaults.set_sampling(settings);
  defaults.set_history(settings);
  defaults.set_ends(settings);
  defaults.refuse_unsupported(settings);
}

TokenIds parse_ids(const std::string& field, const std::string& text) {
  const json parsed = parse_json(text);
  const std::optional<TokenIds> ids = ids_of(parsed.is_array() ? parsed : json::array({parsed}));
  if (!ids) throw UnfitField(Field{field}, ": expected ids, such as [1, 2], got '", text, "'");
  return *ids;
}

std::vector<TokenIds> parse_id_rows(const std::string& field, const std::string& text) {
  const std::optional<std::vector<TokenIds>> rows = id_rows_of(parse_json(text));
  if (!rows)
    throw UnfitField(Field{field}, ": expected a list of lists of ids, such as [[1, 2], [3]], got '", text,
                     "'");
  return *rows;
}

GenerationField field_of(GenerationSettings& settings, std::string_view name) {
  for (const GenerationField& field : fields_of(settings))
    if (field.name == name) return field;
  throw Error("generation has no field '", name, "'");
}

}  // namespace zoo
