#include "data/base/atomic_file.h"
#include "models/checkpoint/checkpoint.h"
#include "models/tasks/text_generator.h"
#include "models/tasks/translate.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tokenizer/pipeline/char_and_byte_tokenizers.h"

using namespace zoo;
using test::error_of;

namespace {

// As many letters as the models have ids.
CharTokenizer alphabet() { return CharTokenizer::train("abcdefghijklm"); }

constexpr const char* kTemplate =
    "{% for m in messages %}{{ {'system': 'a', 'user': 'b', 'assistant': 'c'}[m.role] }}{{ m.content }}d"
    "{% endfor %}{% if add_generation_prompt %}c{% endif %}";

// A saved decoder of letters with a chat template.
struct Chatter {
  Chatter() {
    TransformerConfig config = test::small_config();
    config.max_positions = 64;
    const auto model = test::random_gpt(config, 5);
    save_model(*model, find_family("gpt2"), Head::kCausalLm, directory.path());
    alphabet().save(directory.path());
    write_file(directory / "chat_template.jinja", kTemplate);
  }

  Conversation conversation() const { return Conversation(ChatFormat::read(directory.path())); }

  test::TemporaryDirectory directory;
};

// A model of 24 letters that notes its prompts and answers "e".
struct Noting {
  CharTokenizer tokenizer = alphabet();
  std::vector<std::string> prompts;
  std::vector<std::size_t> dropped;

  std::string ask(Conversation& conversation, const std::string& message, std::int64_t max_new_tokens = 100) {
    return conversation.ask(message, {.tokenizer = tokenizer,
                                      .context = 24,
                                      .max_new_tokens = max_new_tokens,
                                      .answer = [this](const Conversation::Prompt& prompt) {
                                        prompts.push_back(tokenizer.decode(prompt.ids));
                                        dropped.push_back(prompt.dropped);
                                        return std::string("e");
                                      }});
  }
};

}  // namespace

TEST_CASE("A conversation drops its oldest turns, but not the system's message") {
  const Chatter saved;
  Conversation conversation = saved.conversation();
  conversation.set_system("kk");
  Noting model;
  for (const char* message : {"f", "gg", "hhh", "iii"}) CHECK(model.ask(conversation, message) == "e");
  // The answer takes a quarter of 24, so 18 letters are left.
  CHECK(model.prompts ==
        std::vector<std::string>{"akkdbfdc", "akkdbfdcedbggdc", "akkdbggdcedbhhhdc", "akkdbhhhdcedbiiidc"});
  CHECK(model.dropped == std::vector<std::size_t>{0, 0, 2, 2});
  CHECK(conversation.messages().size() == 5);
  CHECK(model.ask(conversation, "j", /*max_new_tokens=*/1) == "e");
  CHECK(model.prompts.back() == "akkdbiiidcedbjdc");

  conversation.reset();
  model.ask(conversation, "f");
  CHECK(model.prompts.back() == "akkdbfdc");
  conversation.set_system("");
  model.ask(conversation, "g");
  CHECK(model.prompts.back() == "bfdcedbgdc");
}

TEST_CASE("A message that cannot be answered leaves the conversation as it was") {
  const Chatter saved;
  Conversation conversation = saved.conversation();
  Noting model;
  model.ask(conversation, "f");
  const std::vector<ChatMessage> before = conversation.messages();
  CHECK(error_of([&] { model.ask(conversation, std::string(18, 'm')); }) ==
        "the message makes a prompt of 21 tokens; the model reads 24, and the answer takes 6");
  CHECK(error_of([&] { model.ask(conversation, "\xff"); }) ==
        "invalid UTF-8 in the message at byte 0 (line 1)");
  CHECK((conversation.messages() == before));
}

TEST_CASE("A model's replies are what it writes after the prompt of its template") {
  const Chatter saved;
  TextGenerator model(saved.directory.path());
  GenerationSettings settings = model.settings();
  settings.temperature = 0;
  settings.options.max_new_tokens = 6;
  Conversation conversation = model.conversation();
  std::string parts;
  const std::string first = model.reply(conversation, "fgh", settings, [&parts](std::string_view part) {
    parts += part;
    return true;
  });
  CHECK(first == model.generate({"bfghdc"}, settings)[0]);
  CHECK(first.size() == 6);
  CHECK(parts == first);
  const std::string second = model.reply(conversation, "i", settings);
  CHECK(second == model.generate({"bfghdc" + first + "dbidc"}, settings)[0]);
  CHECK(model.reply(conversation, "j", settings, [](std::string_view) { return false; }).size() == 1);

  settings.temperature = 1;  // the same message twice: two seeds
  settings.options.max_new_tokens = 20;
  Conversation one = model.conversation();
  const std::string once = model.reply(one, "f", settings);
  settings.options.sampling.seed += 1;
  CHECK(once == model.generate({"bfdc"}, settings)[0]);
}

TEST_CASE("A reply is the best beam, whatever number of them is returned") {
  const Chatter saved;
  TextGenerator model(saved.directory.path());
  GenerationSettings settings = model.settings();
  settings.options.max_new_tokens = 6;
  settings.options.beams = {.num_beams = 3, .num_return_sequences = 3};
  Conversation conversation = model.conversation();
  std::string parts;
  const std::string reply = model.reply(conversation, "fgh", settings, [&parts](std::string_view part) {
    parts += part;
    return true;
  });
  CHECK(reply == model.generate({"bfghdc"}, settings)[0]);
  CHECK(parts == reply);
}

TEST_CASE("A reply and its prompt have at most max_length tokens: older turns are dropped") {
  const Chatter saved;
  TextGenerator model(saved.directory.path());
  GenerationSettings settings = model.settings();
  settings.temperature = 0;
  settings.max_length = 20;
  Conversation conversation = model.conversation();
  CHECK(model.reply(conversation, "fgh", settings).size() == 14);
  for (const char* message : {"i", "k"})
    CHECK(model.reply(conversation, message, settings) ==
          model.generate({"b" + std::string(message) + "dc"}, settings)[0]);
}

TEST_CASE("A conversation takes the positions that its model knows, unless a context is given") {
  TransformerConfig config = test::small_config();
  config.max_positions = 64;
  config.position = PositionKind::kRotary;
  CHECK(conversation_context(config, 0, std::nullopt) == 64);
  CHECK(conversation_context(config, 100, std::nullopt) == 100);
  CHECK(conversation_context(config, 0, 20) == 20);
  config.position = PositionKind::kLearned;
  CHECK(conversation_context(config, 100, 80) == 64);
}

TEST_CASE("A model without a chat template holds no conversation") {
  const Chatter saved;
  std::filesystem::remove(saved.directory / "chat_template.jinja");
  const TextGenerator model(saved.directory.path());
  CHECK(error_of([&] { model.conversation(); }).ends_with(" has no chat template"));
}

TEST_CASE("A translator's texts do not depend on its batches") {
  const test::TemporaryDirectory directory;
  test::FamilyConfig form = test::small_encoder_decoders()[0];
  form.config.vocab_size = 13;
  form.config.decoder_start_token_id = 0;
  const auto model = test::random_model(form.family, form.config, Head::kSeq2SeqLm, 3);
  save_model(*model, find_family(form.family), Head::kSeq2SeqLm, directory.path());
  alphabet().save(directory.path());
  TextTranslator translator(directory.path());
  const std::vector<std::string> texts{"abc", "d", "efghij"};
  const auto together = translator.translate({.texts = texts});
  REQUIRE(together.size() == 3);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    CHECK_FALSE(together[i].ids.empty());
    CHECK(translator.translate({.texts = {texts[i]}})[0].ids == together[i].ids);
    CHECK(translator.translate({.texts = texts, .batch_size = 2})[i].ids == together[i].ids);
  }
  CHECK(translator.translate({.texts = {"bc"}, .prefix = "a"})[0].ids == together[0].ids);
  CHECK(error_of([&] { translator.translate({.texts = texts, .target_lang = "fr"}); }) ==
        "'target_lang': the tokenizer has no token of a language 'fr'");
  CHECK(error_of([&] { translator.translate({.texts = texts, .batch_size = 0}); }) ==
        "'batch_size': expected at least 1, got 0");
}
