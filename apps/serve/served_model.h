#pragma once

#include <atomic>
#include <ctime>
#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <string>
#include <utility>
#include <vector>

#include <c10/util/ScopeExit.h>

#include "apps/serve/compute_thread.h"
#include "models/tasks/generate_session.h"
#include "models/tasks/generation_settings.h"
#include "models/tasks/look_texts.h"
#include "models/tasks/text_constraint.h"
#include "models/tasks/text_embedder.h"
#include "models/tasks/text_model.h"
#include "tokenizer/chat/chat_format.h"
#include "tokenizer/constraint/token_automaton.h"

namespace zoo {

/// The automata of the constraints that requests named last. Clients send the same schema again and again,
/// and to build its automaton takes up to seconds of a core: one is built at a time, whoever asks.
class AutomatonCache {
 public:
  using Automaton = std::shared_ptr<const TokenAutomaton>;

  /// The automaton of a key, from build() if it is not among the last. Throws what build() throws.
  Automaton get(const std::string& key, const std::function<Automaton()>& build);

  /// How often build() was called.
  std::int64_t built() const { return built_; }

 private:
  Automaton find(const std::string& key);

  std::mutex building_, reading_;
  std::list<std::pair<std::string, Automaton>> recent_;  // the last one used first
  std::atomic<std::int64_t> built_ = 0;
};

struct ServeOptions {
  ComputeOptions compute;
  std::string generation_defaults = "file";
  ContinuousBatch::Options batch{.context = 0};  // the model's, at most 4096
  std::int64_t most_new_tokens = 0;              // of a request; 0: the context
  bool draws_seeds = true;                       // for requests without one; else --seed
  double seconds = 600;                          // that a request may take
  std::string run;                               // directory of a training run that is watched; empty: none
  double look_gb = 8;                            // of float32 weights of a model that is looked into
  std::filesystem::path cache_file;              // which may stand beside the model's files
};

/// A model that writes texts: a decoder.
struct WritingModel {
  WritingModel(GenerationSettings given, const GenerateSession& own)
      : defaults(std::move(given)), session(own), chat_session(own) {}

  GenerationSettings defaults;  // of a request that says nothing, from generation_config.json
  GenerateSession session;
  bool draws_seeds = true;
  std::optional<ChatFormat> chat;            // with a template that the zoo can run
  std::string no_chat;                       // the reason why there is none
  GenerateSession chat_session;              // whose answers also end where the template ends them
  std::optional<ToolCallFormat> tool_calls;  // as the template writes them
  std::string no_tool_calls;                 // the reason why they are not known
  std::shared_ptr<DecodingModel> decoder;    // of an adapter with a template of its own: its base's
  std::shared_ptr<ContinuousBatch> batch;

  mutable AutomatonCache automata;

  /// token_bytes() of the tokenizer, computed once.
  const std::vector<std::string>& token_bytes() const;
  /// tool_token_bytes() of the chat's format, computed once.
  std::shared_ptr<const std::vector<std::string>> tool_bytes() const;

 private:
  mutable std::once_flag once_, tool_once_;
  mutable std::vector<std::string> bytes_;
  mutable std::shared_ptr<const std::vector<std::string>> tool_bytes_;
};

/// The decoder of an encoder-decoder, and how it writes by its generation_config.json.
struct TranslatingModel {
  /// Translations at once: each has a KV cache of its own, and takes turns with the others.
  static constexpr std::ptrdiff_t kMost = 4;

  std::unique_ptr<DecodingModel> decoder;
  /// As those of `tzoo translate` with these flags.
  std::function<GenerationOptions(std::optional<std::int64_t> num_beams, std::optional<std::int64_t> length)>
      options;
  std::size_t most_tokens = 0;  // of a text
  std::counting_semaphore<kMost> places{kMost};

  /// One of them, for as long as the result lives. Waits for it; throws as RequestWatch::check().
  auto place(const RequestWatch& watch) {
    while (!places.try_acquire_for(RequestWatch::kInterval)) watch.check();
    return c10::make_scope_exit([this] { places.release(); });
  }
};

/// A model that makes vectors of texts, with its prompts.
struct ServedEmbedder {
  SentenceConfig config;
  TextEmbedder embedder;
};

/// A checkpoint that the server answers from, and what it can answer by the kind of its head.
struct ServedModel {
  std::string name;
  std::int64_t created = std::time(nullptr);
  std::shared_ptr<const Tokenizer> tokenizer;
  std::string model_type, head;
  std::string vocabulary;                        // equal where ids mean the same tokens
  ModelPath directory;                           // of the transformer
  std::string stamp;                             // of its files, when they began to be read
  bool has_two_adapters = false;                 // its own over --adapter's, which is not in `directory`
  std::unique_ptr<LookedModel> inside;           // loaded by the first look, float32 modules
  std::shared_ptr<WritingModel> writing;         // causal-lm; of an adapter its base's, or with its own chat
  std::size_t adapter = 0;                       // of `writing`; 0: none
  std::unique_ptr<TextModel> text;               // masked-lm, classification, question answering, seq2seq-lm
  std::unique_ptr<TranslatingModel> translator;  // seq2seq-lm
  std::unique_ptr<ServedEmbedder> embedder;      // base and masked-lm; of other heads by the first request

  /// Throws ApiError 400 saying that the model `does`, for a request that it cannot answer.
  [[noreturn]] void refuse(const std::string& does) const;
  [[noreturn]] void refuse_head(const std::string& does) const {
    refuse("has a " + head + " head and " + does);
  }
  /// The part that writes. Throws ApiError if there is none.
  const WritingModel& writer() const {
    if (!writing) refuse_head("does not continue texts");
    return *writing;
  }
};

/// Loads a model and everything that its requests need. Throws Error naming the directory.
std::unique_ptr<ServedModel> load_served_model(const ModelPath& directory, const ServeOptions& options);

/// A model that writes with a PEFT adapter beside `base`, whose weights and batch it shares. Throws Error
/// naming the directory for an adapter that PeftAdapter::terms() or the packed weights do not have, and if
/// `base` does not write or runs as modules.
std::unique_ptr<ServedModel> load_adapted_model(const ServedModel& base, const std::string& directory,
                                                const ServeOptions& options);

/// What turns texts into vectors: `tzoo embed` with the model. For a head of another kind the first call
/// loads the model without it. Throws ApiError for an encoder-decoder.
const ServedEmbedder& embedder_of(ServedModel& model, const ServeOptions& options);

/// The model as modules in float32, beside what answers requests: analyses need every part's output, which
/// packed weights do not give. The first call loads it. Throws ApiError for one beyond options.look_gb and
/// one that is no stack of layers.
LookedModel& inside_of(ServedModel& model, const ServeOptions& options);

}  // namespace zoo
