#include "models/tasks/text_generator.h"

#include <algorithm>

#include "data/base/error.h"
#include "models/generation/generate.h"
#include "models/tasks/inference_loading.h"

namespace zoo {

namespace {

GenerationSettings settings_of(const GenerationConfig& config) {
  GenerationSettings settings;
  apply_generation_config(settings, config, [](std::string_view) { return false; });
  if (settings.max_length) settings.options.max_new_tokens = 0;  // until the caller sets it
  return settings;
}

}  // namespace

TextGenerator::TextGenerator(const std::filesystem::path& model, const ComputeOptions& compute)
    : TextGenerator(read_writing_checkpoint(model), compute) {}

TextGenerator::TextGenerator(const CheckpointConfig& checkpoint, const ComputeOptions& compute)
    : config_(read_generation_config(checkpoint.directory, checkpoint.json)),
      settings_(settings_of(config_)),
      session_(open_generate_session(checkpoint, config_, settings_.stop, TokenizerUse::kNeeded)) {
  if (!session_.tokenizer) throw Error(checkpoint.directory, " holds no tokenizer, which texts need");
  settings_.options.sampling.seed = static_cast<std::uint64_t>(compute.seed);
  model_ = load_decoding_model(checkpoint, compute);
}

std::vector<std::string> TextGenerator::generate(const std::vector<std::string>& prompts,
                                                 const GenerationSettings& settings) {
  const GenerateSession session = session_for(settings);
  std::vector<TokenIds> ids;
  std::size_t longest = session.has_encoder() ? 1 : 0;
  for (const std::string& prompt : prompts) {
    ids.push_back(session.tokenizer->encode(prompt, EncodeOptions{.with_offsets = false}).ids);
    if (!session.has_encoder()) longest = std::max(longest, ids.back().size());
  }
  GenerationOptions options = options_for(settings, longest);
  complete(options, session);
  std::vector<std::string> texts;
  for (const TokenIds& row : zoo::generate(*model_, ids, options).ids)
    texts.push_back(text_of_row(row, session));
  return texts;
}

GenerateSession TextGenerator::session_for(const GenerationSettings& settings) const {
  GenerateSession session = session_;
  session.stop = StopStrings(settings.stop);
  if (!settings.options.eos_token_ids.empty())
    session.defaults.eos_token_ids = settings.options.eos_token_ids;  // which texts leave out
  return session;
}

// As in transformers, a caller's max_new_tokens overrides the file's max_length.
std::optional<std::int64_t> TextGenerator::max_length_of(const GenerationSettings& settings) const {
  const bool overridden = settings.options.max_new_tokens > 0 && settings.max_length == settings_.max_length;
  return overridden ? std::nullopt : settings.max_length;
}

GenerationOptions TextGenerator::options_for(const GenerationSettings& settings,
                                             std::size_t longest_prompt) const {
  GenerationOptions options = settings.generation_options();
  if (max_length_of(settings))
    options.max_new_tokens = settings.new_token_limit(static_cast<std::int64_t>(longest_prompt));
  return options;
}

Conversation TextGenerator::conversation() const {
  const ModelPath& model = session_.checkpoint.directory;
  ChatFormat format = ChatFormat::read(model, model.adapter);
  if (!format.has_template()) throw Error(model, " has no chat template");
  return Conversation(std::move(format));
}

std::string TextGenerator::reply(Conversation& conversation, const std::string& message,
                                 const GenerationSettings& settings,
                                 const std::function<bool(std::string_view)>& on_text) {
  if (session_.has_encoder())
    throw Error(session_.checkpoint.directory, " is an encoder-decoder; chat needs a decoder");
  GenerateSession session = session_for(settings);
  if (settings.options.eos_token_ids.empty()) add_end_tokens(session, conversation.format());
  const auto answer = [&](const Conversation::Prompt& prompt) {
    GenerationOptions options = options_for(settings, prompt.ids.size());
    options.sampling.seed += conversation.messages().size();
    options.beams.num_return_sequences = 1;
    options.keep_cache = true;  // the next prompt begins like this one
    complete(options, session);
    RowText text(session);
    bool goes_on = on_text != nullptr;
    const auto tell = [&](const std::string& part) {
      if (goes_on && !part.empty()) goes_on = on_text(part);
      return goes_on || !on_text;
    };
    const auto result = zoo::generate(*model_, {prompt.ids}, options,
                                      [&](const NewToken& token) { return tell(text.push(token.id)); });
    tell(text.finish());
    return text_of_row(result.ids[0], session);
  };
  return conversation.ask(message, {.tokenizer = *session.tokenizer,
                                    .context = conversation_context(
                                        model_->config(), settings.options.context, max_length_of(settings)),
                                    .max_new_tokens = options_for(settings, 1).max_new_tokens,
                                    .answer = answer});
}

}  // namespace zoo
