#include "apps/serve/served_model.h"

#include <algorithm>
#include <filesystem>
#include <random>
#include <set>

#include <c10/util/accumulate.h>
#include <sys/stat.h>

#include "apps/answers/answers.h"
#include "apps/hub/hub_cache.h"
#include "apps/serve/api_error.h"
#include "data/base/ending.h"
#include "data/base/field_error.h"
#include "data/corpora/sha256.h"
#include "models/checkpoint/peft_adapter.h"
#include "models/generation/decoding_batch.h"
#include "models/inference/packed_decoder.h"
#include "models/tasks/inference_loading.h"
#include "models/tasks/translate.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

// The largest automata take 50 MB each.
constexpr std::size_t kMost = 8;

constexpr std::int64_t kUsualContext = 4096;

// Everything that a request can say, or the server does not do, counts as given: the file's values for it are
// left out.
bool is_not_a_default(std::string_view flag) {
  constexpr std::array kNames{"num_samples", "penalty_alpha", "num_beams", "max_new_tokens", "max_length"};
  return std::find(kNames.begin(), kNames.end(), flag) != kNames.end();
}

GenerationSettings default_settings(const GenerationConfig& config, const ServeOptions& options) {
  GenerationSettings settings{.temperature = 1.0};
  settings.options.sampling = {.seed = static_cast<std::uint64_t>(options.compute.seed)};
  if (options.generation_defaults == "file") apply_generation_config(settings, config, is_not_a_default);
  return settings;
}

void read_chat(WritingModel& model, const ModelPath& directory) {
  try {
    ChatFormat format = ChatFormat::read(directory, directory.adapter);
    if (!format.has_template()) throw Error("this model has no chat template");
    format.choose(/*with_tools=*/false);
    add_end_tokens(model.chat_session, format);
    model.chat = std::move(format);
  } catch (const Error& error) {
    model.no_chat = error.what();
    return;
  }
  try {
    std::vector<std::string> ends;
    for (const TokenId id : model.chat_session.defaults.eos_token_ids)
      ends.push_back(model.session.tokenizer->decode_with_special_tokens(TokenIds{id}));
    std::erase(ends, "");
    model.tool_calls = ToolCallFormat::find(*model.chat, ends);
  } catch (const Error& error) {
    model.no_tool_calls = error.what();
  }
}

std::unique_ptr<WritingModel> load_writing(const CheckpointConfig& checkpoint, const ServeOptions& options) {
  const GenerationConfig file = read_generation_config(checkpoint.directory, checkpoint.json);
  const GenerationSettings defaults = default_settings(file, options);
  const GenerateSession session =
      open_generate_session(checkpoint, file, defaults.stop, TokenizerUse::kNeeded);
  if (!session.tokenizer)
    throw FieldError(Field{"model"}, ": ", checkpoint.directory, " holds no tokenizer, which texts need");
  auto model = std::make_unique<WritingModel>(defaults, session);
  model->draws_seeds = options.draws_seeds;
  read_chat(*model, checkpoint.directory);
  model->decoder = load_decoding_model(checkpoint, options.compute);
  ContinuousBatch::Options batch = options.batch;
  const TransformerConfig& config = checkpoint.config;
  if (batch.context == 0)
    batch.context = std::min({config.max_positions, kUsualContext, context_limit(config)});
  // Beyond it rotary positions depend on the length, which no batch has.
  if (const RopeScaling& scaling = config.rope_scaling; scaling.depends_on_length())
    batch.context = std::min(batch.context, scaling.original_max_positions);
  model->batch = std::make_unique<ContinuousBatch>(*model->decoder, batch);
  return model;
}

// As `tzoo translate` does.
std::unique_ptr<TranslatingModel> load_translating(const TextModel& text, const ServeOptions& options) {
  auto model = std::make_unique<TranslatingModel>();
  model->options = [&text, reads_file = options.generation_defaults == "file",
                    config = read_generation_config(text.checkpoint.directory, text.checkpoint.json),
                    seed = options.draws_seeds ? std::nullopt : std::optional(options.compute.seed)](
                       std::optional<std::int64_t> num_beams, std::optional<std::int64_t> length) {
    GenerationSettings settings = translation_settings();
    if (num_beams) settings.options.beams.num_beams = *num_beams;
    if (length) settings.options.max_new_tokens = *length;
    const auto given = [&](std::string_view name) {
      return (num_beams && name == "num_beams") || (length && name == "max_new_tokens");
    };
    if (reads_file) apply_generation_config(settings, config, given);
    settings.options.sampling.seed =
        seed ? static_cast<std::uint64_t>(*seed) : std::uint64_t{std::random_device()()} << 16;
    return translation_options(settings, text.checkpoint, config);
  };
  model->options({}, {});  // what it cannot do ends the loading
  model->decoder = decoding_model({.model = text.model, .stored = text.stored}, options.compute);
  const std::int64_t reads = std::min(context_limit(text.model->config()), kUsualContext);
  model->most_tokens = static_cast<std::size_t>(options.batch.context > 0 ? options.batch.context : reads);
  return model;
}

// The server's --cache is for those of its models that write.
ComputeOptions without_cache(ComputeOptions compute) {
  compute.cache = "auto";
  return compute;
}

std::unique_ptr<ServedEmbedder> load_embedder(const ModelPath& directory, const ServeOptions& options,
                                              std::shared_ptr<Model> loaded) {
  const SentenceConfig config = SentenceConfig::read(directory);
  const CheckpointConfig checkpoint = read_checkpoint_config(config.transformer);
  c10::Device device = c10::kCPU;
  if (!loaded) {
    TextModel bare = load_text_model(checkpoint, without_cache(options.compute), Head::kBase);
    loaded = bare.model;
    device = bare.device;
  }
  return std::make_unique<ServedEmbedder>(
      ServedEmbedder{config, TextEmbedder(loaded, load_tokenizer(config.transformer, checkpoint.json.get()),
                                          config, EmbedOptions{.modules = {.device = device}})});
}

// Tells the files of a model from others that took their places. Contents as large as these would have to be
// read for seconds, so names, sizes and times stand for them; that of the last change cannot be set.
std::string stamp_of(const ModelPath& model, const ServeOptions& options) {
  static const std::set<std::string> decides{".safetensors", ".bin", ".json", ".gguf"};
  std::string files;
  for (const fs::path& place : {fs::path(model), model.adapter}) {
    std::set<fs::path> all{place};
    if (fs::is_directory(place)) all = {fs::directory_iterator(place), {}};
    for (const fs::path& file : all) {
      struct stat status {};
      std::error_code ignored;
      if (!decides.contains(ending_of(file)) || fs::equivalent(file, options.cache_file, ignored)) continue;
      if (::stat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
      files += file.string();
      for (const auto number : {std::int64_t{status.st_size}, std::int64_t{status.st_mtim.tv_sec},
                                std::int64_t{status.st_mtim.tv_nsec}, std::int64_t{status.st_ctim.tv_sec},
                                std::int64_t{status.st_ctim.tv_nsec}})
        files += " " + std::to_string(number);
      files += "\n";
    }
  }
  return sha256(files);
}

// A part that is read at its first request must be of the model that answers.
void require_own_files(const ServedModel& model, const ServeOptions& options) {
  if (model.has_two_adapters) model.refuse("is an adapter over another one, and writes texts alone");
  if (stamp_of(model.directory, options) != model.stamp)
    model.refuse("has other files than at the server's start, which reads them; start it again");
}

}  // namespace

AutomatonCache::Automaton AutomatonCache::find(const std::string& key) {
  const std::lock_guard lock(reading_);
  const auto found = std::ranges::find(recent_, key, &std::pair<std::string, Automaton>::first);
  if (found == recent_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, found);
  return found->second;
}

AutomatonCache::Automaton AutomatonCache::get(const std::string& key,
                                              const std::function<Automaton()>& build) {
  if (Automaton known = find(key)) return known;
  const std::lock_guard one_at_a_time(building_);
  if (Automaton known = find(key)) return known;  // built while this request waited
  ++built_;
  Automaton automaton = build();
  const std::lock_guard lock(reading_);
  recent_.emplace_front(key, automaton);
  if (recent_.size() > kMost) recent_.pop_back();
  return automaton;
}

const std::vector<std::string>& WritingModel::token_bytes() const {
  std::call_once(once_, [&] { bytes_ = zoo::token_bytes(*session.tokenizer); });
  return bytes_;
}

std::shared_ptr<const std::vector<std::string>> WritingModel::tool_bytes() const {
  std::call_once(tool_once_, [&] {
    tool_bytes_ = std::make_shared<const std::vector<std::string>>(
        tool_token_bytes(chat_session, *tool_calls, token_bytes()));
  });
  return tool_bytes_;
}

std::unique_ptr<ServedModel> load_served_model(const ModelPath& directory, const ServeOptions& options) {
  auto model = std::make_unique<ServedModel>();
  model->name = model_name(directory);
  const bool pools = SentenceConfig::pools(directory);
  model->directory = pools ? SentenceConfig::read(directory).transformer : directory;
  model->stamp = stamp_of(model->directory, options);
  const CheckpointConfig checkpoint = read_checkpoint_config(model->directory);
  const Head head = pools ? Head::kBase : checkpoint.head;
  model->model_type = checkpoint.family->model_type;
  model->head = pools ? "sentence embedding" : name_of(head);
  if (head == Head::kCausalLm) {
    model->writing = load_writing(checkpoint, options);
    model->tokenizer = model->writing->session.tokenizer;
    return model;
  }
  if (head == Head::kBase) {
    model->embedder = load_embedder(directory, options, nullptr);
  } else {
    model->text =
        std::make_unique<TextModel>(load_text_model(checkpoint, without_cache(options.compute), head));
    if (head == Head::kSeq2SeqLm) model->translator = load_translating(*model->text, options);
    if (head == Head::kMaskedLm) model->embedder = load_embedder(directory, options, model->text->model);
  }
  model->tokenizer = load_tokenizer(model->directory, checkpoint.json.get());
  return model;
}

std::unique_ptr<ServedModel> load_adapted_model(const ServedModel& base, const std::string& directory,
                                                const ServeOptions& options) {
  auto* decoder =
      base.writing ? dynamic_cast<inference::PackedDecoder*>(base.writing->decoder.get()) : nullptr;
  if (decoder == nullptr)
    throw FieldError(Field{"lora"}, ": only for a decoder with packed weights, which ", base.name, " is not");
  const CheckpointConfig& checkpoint = base.writing->session.checkpoint;
  const PeftAdapter adapter(directory);
  if (adapter.head() && *adapter.head() != Head::kCausalLm)
    throw Error(directory, ": the adapter is of a ", name_of(*adapter.head()),
                " model, which writes no text");
  if (has_tokenizer(directory) && base.tokenizer) {
    const auto own = load_tokenizer(directory);
    if (own->vocab_size() != base.tokenizer->vocab_size() || first_other_token(*own, *base.tokenizer))
      throw Error(directory,
                  ": the adapter's tokenizer has other tokens than the model's; "
                  "serve the merged model instead");
  }
  auto model = std::make_unique<ServedModel>();
  model->tokenizer = base.tokenizer;
  model->model_type = base.model_type;
  model->head = base.head;
  model->vocabulary = base.vocabulary;
  model->directory = {base.directory, directory};
  model->stamp = stamp_of(model->directory, options);
  model->has_two_adapters = !base.directory.adapter.empty();
  model->writing = base.writing;
  if (ChatFormat::read(directory).has_template()) {
    const WritingModel& own = *base.writing;
    model->writing = std::make_shared<WritingModel>(own.defaults, own.session);
    model->writing->draws_seeds = own.draws_seeds;
    model->writing->decoder = own.decoder;
    model->writing->batch = own.batch;
    read_chat(*model->writing, model->directory);
  }
  const WeightTable table = weight_table_of(*checkpoint.family, checkpoint.config, checkpoint.head);
  const std::int64_t layers = checkpoint.config.num_layers;
  if (const auto whole = adapter.whole(table, layers); !whole.empty())
    throw Error(directory, ": ", whole.front(), " is saved whole; serve the merged model instead");
  model->adapter = decoder->add_adapter(adapter.terms(checkpoint.files(), table, layers));
  return model;
}

void ServedModel::refuse(const std::string& does) const {
  throw ApiError(400, "'" + name + "' " + does, "model", "model_not_supported");
}

const ServedEmbedder& embedder_of(ServedModel& model, const ServeOptions& options) {
  if (!model.embedder && model.translator) model.refuse_head("makes no embeddings");
  if (!model.embedder) {
    require_own_files(model, options);
    model.embedder = load_embedder(model.directory, options, nullptr);
  }
  return *model.embedder;
}

LookedModel& inside_of(ServedModel& model, const ServeOptions& options) {
  if (model.inside) return *model.inside;
  require_own_files(model, options);
  const CheckpointConfig checkpoint = read_checkpoint_config(model.directory);
  std::int64_t numbers = 0;
  for (const std::string& name : checkpoint.files().names())
    numbers += c10::multiply_integers(checkpoint.files().entry(name).shape);
  const double gigabytes = 4e-9 * static_cast<double>(numbers);
  if (gigabytes > options.look_gb)
    model.refuse("needs " + decimal(gigabytes, 1) + " GB in float32 to be looked into; --look_gb allows " +
                 decimal(options.look_gb, 1));
  auto loaded =
      std::make_unique<LookedModel>(load_looked_model(model.directory, {.device = options.compute.device}));
  if (!loaded->model.model->parts().embeddings) model.refuse("is no stack of layers that can be looked into");
  model.inside = std::move(loaded);
  return *model.inside;
}

}  // namespace zoo
