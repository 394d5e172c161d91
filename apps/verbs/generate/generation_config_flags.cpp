#include "apps/verbs/generate/generation_config_flags.h"

#include <array>

#include <nlohmann/json.hpp>

#include "apps/training/records/run_directory.h"
#include "data/base/error.h"
#include "data/base/sizes.h"
#include "models/formats/config_reader.h"

namespace zoo {
namespace {

using nlohmann::json;
using Given = std::function<bool(std::string_view)>;

// A key of transformers' GenerationConfig that the zoo lacks.
struct Unsupported {
  const char* key;
  json off;                                               // the value that switches it off; null does, too
  enum { kAlways, kSampling, kBeams } changes = kAlways;  // the ways of choosing whose ids it changes
};
const std::array<Unsupported, 16> kUnsupported{{{"guidance_scale", 1.0},
                                                {"penalty_alpha", 0.0},
                                                {"epsilon_cutoff", 0.0, Unsupported::kSampling},
                                                {"eta_cutoff", 0.0, Unsupported::kSampling},
                                                {"top_h", nullptr, Unsupported::kSampling},
                                                {"encoder_repetition_penalty", 1.0},
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

  void refuse_unsupported(const GenerateFlags& flags) const {
    const bool beams = flags.options.beams.num_beams > 1;
    const bool samples = reader_.get_bool("do_sample", false) && flags.temperature.value_or(0) > 0;
    for (const auto& [key, off, changes] : kUnsupported) {
      const bool matters =
          changes == Unsupported::kAlways || (changes == Unsupported::kBeams ? beams : samples);
      if (matters && !given_(key) && !reader_.is(key, off))
        reader_.refuse(key, "which is not supported; " + std::string(kLeaveOut));
    }
  }

  bool says(const char* key) const { return reader_.has(key) && !given_(key); }

  void set(const char* key, std::int64_t& value) const {
    if (says(key)) value = get_count(key, value);
  }
  void set(const char* key, std::optional<std::int64_t>& value) const {
    if (says(key)) value = get_count(key, 0);
  }
  void set(const char* key, double& value) const {
    if (says(key)) value = reader_.get_double(key, value);
  }
  void set(const char* key, std::optional<std::string>& value) const {  // a flag of JSON text
    if (says(key)) value = reader_.at(key).dump();
  }

  // transformers reads the other keys only if do_sample is true. A file without it says nothing of sampling.
  void set_sampling(GenerateFlags& flags) const {
    if (!reader_.has("do_sample")) return;
    const bool samples = reader_.get_bool("do_sample", false);
    if (!given_("temperature")) flags.temperature = samples ? reader_.get_double("temperature", 1.0) : 0.0;
    if (!samples) return;
    if (!given_("top_k")) flags.options.sampling.top_k = get_count("top_k", kTheirTopK);
    set("top_p", flags.options.sampling.top_p);
    set("min_p", flags.options.sampling.min_p);
    set("typical_p", flags.options.sampling.typical_p);
  }

  void set_beams(GenerateFlags& flags) const {
    set("num_beams", flags.options.beams.num_beams);
    if (flags.options.beams.num_beams < 2) return;
    set("length_penalty", flags.options.beams.length_penalty);
    set("num_return_sequences", flags.options.beams.num_return_sequences);
    set("num_beam_groups", flags.options.beams.num_beam_groups);
    set("diversity_penalty", flags.options.beams.diversity_penalty);
    flags.options.beams.renormalize_logits = reader_.get_bool("renormalize_logits", false);
    if (!says("early_stopping")) return;
    if (reader_.at("early_stopping") == json("never")) {
      flags.options.beams.early_stopping = EarlyStopping::kNever;
    } else {
      flags.early_stopping = reader_.get_bool("early_stopping", false);
    }
  }

  void set_ends(GenerateFlags& flags) const {
    if (!given_("max_length")) set("max_new_tokens", flags.options.max_new_tokens);
    const bool says_new_tokens = given_("max_new_tokens") || says("max_new_tokens");
    if (!says_new_tokens) set("max_length", flags.max_length);
    if (!given_("min_length")) set("min_new_tokens", flags.options.history.min_new_tokens);
    // In transformers even a min_new_tokens of 0 takes the place of min_length.
    if (!given_("min_new_tokens") && !says("min_new_tokens"))
      set("min_length", flags.options.history.min_length);
    if (!says("stop_strings") || given_("stop")) return;
    const json& stop = reader_.at("stop_strings");
    for (const json& text : stop.is_array() ? stop : json::array({stop})) {
      if (!text.is_string()) reader_.refuse("stop_strings", "expected a text or a list of texts");
      flags.stop.push_back(text.get<std::string>());
    }
  }

  void set_history(GenerateFlags& flags) const {
    set("repetition_penalty", flags.options.history.repetition_penalty);
    set("no_repeat_ngram_size", flags.options.history.no_repeat_ngram_size);
    set("bad_words_ids", flags.bad_words_ids);
    set("suppress_tokens", flags.suppress_tokens);
    set("begin_suppress_tokens", flags.begin_suppress_tokens);
    set("forced_bos_token_id", flags.options.history.forced_bos_token_id);
    if (!says("forced_eos_token_id")) return;
    const json& ids = reader_.at("forced_eos_token_id");
    flags.forced_eos_token_ids = (ids.is_array() ? ids : json::array({ids})).dump();
  }

 private:
  static constexpr const char* kLeaveOut = "--generation_defaults ours leaves the file out";
  static constexpr std::int64_t kTheirTopK = 50;  // of a file that samples and does not say it

  std::int64_t get_count(const char* key, std::int64_t fallback) const {
    const std::int64_t count = reader_.get_int(key, fallback);
    if (count > kLargestGivenCount || count < -kLargestGivenCount)
      reader_.refuse(key, "expected an integer of at most " + std::to_string(kLargestGivenCount) + "; " +
                              std::string(kLeaveOut));
    return count;
  }

  ConfigReader reader_;
  const Given& given_;
};

}  // namespace

void apply_generation_config(GenerateFlags& flags, const Given& given) {
  const std::filesystem::path& model = flags.model;
  if (!std::filesystem::exists(model / "config.json") && RunDirectory(model, 0).holds_run()) {
    throw Error("--model: ", model,
                " is the directory of a training run; its models are in final/, best/ and checkpoints/");
  }
  flags.checkpoint = read_writing_checkpoint(model);
  flags.generation_config = read_generation_config(model, flags.checkpoint->json);
  if (flags.generation_defaults != "file") return;
  const Defaults defaults(*flags.generation_config->values, flags.generation_config->path.string(), given);
  const bool way_asked = given("temperature") || given("top_k") || given("top_p") || given("min_p") ||
                         given("typical_p") || given("draft_model") || given("num_samples");
  const bool greedy_asked = given("temperature") && flags.temperature == 0.0;
  if (!way_asked || greedy_asked || given("num_beams")) defaults.set_beams(flags);
  if (!greedy_asked) defaults.set_sampling(flags);
  defaults.set_history(flags);
  defaults.set_ends(flags);
  defaults.refuse_unsupported(flags);
}

}  // namespace zoo
