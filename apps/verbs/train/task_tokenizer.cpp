#include <algorithm>
#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/command/tokenizer_choice.h"
#include "apps/verbs/train/train_data.h"
#include "data/base/atomic_file.h"
#include "data/base/json.h"
#include "tokenizer/pipeline/pipeline.h"
#include "tokenizer/pipeline/tokenizer_json_writer.h"
#include "tokenizer/sentencepiece/sentencepiece_tokenizer.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Role {
  SpecialToken role;
  const char *key, *token;
};

std::vector<Role> roles_of(TaskTextStyle style) {
  using enum SpecialToken;
  switch (style) {
    case TaskTextStyle::kPadded: return {{pad, "pad_token", "<pad>"}, {unk, "unk_token", "<unk>"}};
    case TaskTextStyle::kEncoder:
      return {{pad, "pad_token", "[PAD]"},
              {unk, "unk_token", "[UNK]"},
              {cls, "cls_token", "[CLS]"},
              {sep, "sep_token", "[SEP]"},
              {mask, "mask_token", "[MASK]"}};
    case TaskTextStyle::kEncoderDecoder:
      return {{pad, "pad_token", "<pad>"}, {eos, "eos_token", "</s>"}, {unk, "unk_token", "<unk>"}};
    default: return {};
  }
}

std::string sentinel(std::int64_t i) { return "<extra_id_" + std::to_string(i) + ">"; }

// Adds a style's special tokens to the files of a newly trained tokenizer.
void add_special_tokens(const fs::path& directory, const TokenizerRequest& request) {
  json root = read_json(directory / "tokenizer.json", kMostVocabulary);
  json &vocabulary = root["model"]["vocab"], &added = root["added_tokens"];
  if (!added.is_array()) added = json::array();
  json ids = vocabulary;
  for (const json& token : added) ids[token["content"].get<std::string>()] = token["id"];
  // Also to the model's vocabulary: the tokenizers library renumbers tokens that are missing there.
  const auto add = [&](const std::string& token) {
    const json id = ids.contains(token) ? ids[token] : json(ids.size());
    ids[token] = vocabulary[token] = id;
    if (std::ranges::none_of(added, [&](const json& each) { return each["content"] == token; }))
      added.push_back(added_token_json(special_token(token, id.get<TokenId>())));
  };
  json config = fast_tokenizer_config();
  for (const Role& role : roles_of(request.style)) {
    // A character vocabulary needs an unknown token for characters that it lacks; bytes cover all text.
    const bool unknown = role.role == SpecialToken::unk;
    if (unknown && request.choice != "char") continue;
    add(role.token);
    if (unknown) root["model"]["unk_token"] = role.token;
    config[role.key] = role.token;
  }
  for (std::int64_t i = 0; i < request.sentinels; ++i) add(sentinel(i));
  const auto id = [&](const std::string& token) { return ids[token].get<std::int64_t>(); };
  if (request.style == TaskTextStyle::kEncoder)
    root["post_processor"] =
        template_json({"[CLS]", "A", "[SEP]"}, {"[CLS]", "A", "[SEP]", "B", "[SEP]"}, id);
  if (request.style == TaskTextStyle::kEncoderDecoder)
    root["post_processor"] = template_json({"A", "</s>"}, {"A", "</s>", "B", "</s>"}, id);
  for (const char* other : {"vocab.json", "merges.txt", "vocab.txt"}) fs::remove(directory / other);
  write_json(directory / "tokenizer.json", root);
  write_json(directory / "tokenizer_config.json", config);
}

std::unique_ptr<Tokenizer> learn_for_task(const TokenizerRequest& request, std::string_view text) {
  const AtomicDirectory scratch(temporary_folder() / "tzoo-task-tokenizer");
  if (request.choice == "sentencepiece") {
    // Trains as T5 does, with the normalization of its vocabularies.
    SentencePieceTokenizer::train(text, {.vocab_size = request.vocab_size, .num_threads = 1})
        .save(scratch.path());
    const fs::path path = scratch.path() / "tokenizer_config.json";
    json config = read_json(path);
    if (request.sentinels > 0) config["extra_ids"] = request.sentinels;
    write_json(path, config);
  } else {
    choose_tokenizer(request.choice, text, request.vocab_size)->save(scratch.path());
    const bool complete = request.choice == "wordpiece" && request.style == TaskTextStyle::kEncoder;
    if (!complete) add_special_tokens(scratch.path(), request);
  }
  return load_tokenizer(scratch.path());
}

}  // namespace

std::unique_ptr<Tokenizer> choose_task_tokenizer(const TokenizerRequest& request, std::string_view text) {
  const bool learnt = request.choice != "byte" && std::ranges::count(kTokenizerKinds, request.choice) > 0;
  std::unique_ptr<Tokenizer> tokenizer = learnt && request.style != TaskTextStyle::kPlain
                                             ? learn_for_task(request, text)
                                             : choose_tokenizer(request.choice, text, request.vocab_size);
  require_special_tokens(*tokenizer, request.style);
  return tokenizer;
}

void require_special_tokens(const Tokenizer& tokenizer, TaskTextStyle style) {
  for (const Role& role : roles_of(style)) {
    if (role.role == SpecialToken::unk || tokenizer.special_id(role.role)) continue;
    // GPT-2's tokenizer has an end token but no padding token; masked positions may have any id.
    if (style == TaskTextStyle::kPadded && tokenizer.eos_id()) continue;
    throw Error("--tokenizer: a tokenizer of kind ", tokenizer.kind(), " has no ", role.key, " such as ",
                role.token, ", which this task needs");
  }
}

TokenIds sentinels_of(const Tokenizer& tokenizer) {
  TokenIds ids;
  for (std::int64_t i = 0; i < tokenizer.vocab_size(); ++i) {
    TokenIds found = tokenizer.encode(sentinel(i));
    // A tokenizer without this sentinel encodes it as text; some tokenizers add a space before it.
    std::erase_if(found, [&](TokenId id) { return tokenizer.token_text(id) != sentinel(i); });
    if (found.size() != 1) break;
    ids.push_back(found.front());
  }
  return ids;
}

ChatFormat choose_chat_format(const DataFlags& flags, const std::optional<ChatFormat>& known) {
  std::optional<ChatFormat> chat = known;
  if (!chat && flags.tokenizer && has_tokenizer(*flags.tokenizer)) chat = ChatFormat::read(*flags.tokenizer);
  if (!chat)
    throw UsageError("--task ", name_of(flags.task),
                     " needs a model or a tokenizer that exists: --init_from DIR or --tokenizer DIR");
  if (!flags.chat_template.empty()) {
    if (const std::size_t count = chat->files().size(); count > 1)
      std::cerr << "note: --chat_template takes the place of all " << count << " templates of the model\n";
    chat->use_template(flags.chat_template);
  } else if (!chat->has_template()) {
    chat->use_plain_template();
    std::cerr << "note: the model has no chat template; turns stand under \"User:\" and \"Assistant:\" "
                 "(--chat_template FILE takes another)\n";
  }
  return *std::move(chat);
}

std::vector<bool> word_beginnings(const Tokenizer& tokenizer) {
  std::vector<bool> begins, continues;
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::string token = tokenizer.token_text(id);
    // A space in GPT-2's and T5's tokens.
    begins.push_back(token.starts_with("\u0120") || token.starts_with("\u2581"));
    continues.push_back(token.starts_with("##"));
  }
  if (std::ranges::count(continues, true) > 0) {
    continues.flip();
    return continues;
  }
  return std::ranges::count(begins, true) > 0 ? begins : std::vector<bool>();
}

}  // namespace zoo
