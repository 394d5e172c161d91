#include <nlohmann/json.hpp>

#include "models/tasks/text_constraint.h"
#include "tests/support/catch.h"
#include "tokenizer/pipeline/char_and_byte_tokenizers.h"

using namespace zoo;

namespace {

// The only call is <<t>{f:{}}. Ids: 0 ends, 3 and 9 complete the marker and go on.
const std::vector<std::string> kTokens{"", "a", "<<t>", "<<t>a", "{", "f:{}}", "<", "t>", "<<", "<<t>{"};

struct Setting {
  Setting() {
    session.checkpoint.config.vocab_size = static_cast<std::int64_t>(kTokens.size());
    session.defaults.eos_token_ids = {0};
    session.tokenizer = std::make_shared<CharTokenizer>(
        std::vector<char32_t>{U'a', U'b', U'c', U'd', U'e', U'f', U'g', U'h', U'i', U'j'});
    format.begin = "<<t>{";
    format.middle = ":";
    format.end = "}";
    const auto schema = std::make_shared<nlohmann::ordered_json>(
        nlohmann::ordered_json{{"type", "object"}, {"properties", nlohmann::ordered_json::object()}});
    const PatternPtr pattern = tool_call_pattern(format, {{"f", schema}}, false);
    constraint = make_tool_constraint(make_token_automaton(pattern, session, kTokens), session, format);
  }

  std::vector<TokenId> allowed(std::int64_t state, std::int64_t tokens = 100) const {
    const at::Tensor mask = constraint->mask(state, tokens);
    std::vector<TokenId> ids;
    for (TokenId id = 0; id < mask.size(0); ++id)
      if (mask[id].item<float>() == 0) ids.push_back(id);
    return ids;
  }
  std::int64_t after(const std::vector<TokenId>& ids) const {
    std::int64_t state = constraint->begin(100);
    for (const TokenId id : ids) state = constraint->next(state, id);
    return state;
  }

  GenerateSession session{
      .checkpoint = {}, .defaults = {}, .tokenizer = nullptr, .stop = StopStrings({}), .pieces = nullptr};
  ToolCallFormat format;
  std::shared_ptr<const TokenConstraint> constraint;
};

}  // namespace

TEST_CASE("A text is free until it begins a call, which then fits the tools") {
  const Setting tools;
  CHECK(tools.allowed(tools.after({})) ==
        std::vector<TokenId>{0, 1, 2, 4, 5, 6, 7, 8, 9});  // <<t>a is no call
  CHECK_FALSE(tools.constraint->complete(tools.after({})));
  for (const std::vector<TokenId>& begun :
       {std::vector<TokenId>{2}, {1, 2}, {6, 6, 7}, {8, 7}, {6, 8, 7}, {6, 1, 8, 7}})
    CHECK(tools.allowed(tools.after(begun)) == std::vector<TokenId>{4});
  for (const std::vector<TokenId>& free : {std::vector<TokenId>{6, 7}, {6, 1, 7}, {8, 1, 6, 7}})
    CHECK(tools.allowed(tools.after(free)).size() == 9);
  CHECK(tools.allowed(tools.after({9})) == std::vector<TokenId>{5});
  const std::int64_t called = tools.after({1, 2, 4, 5});
  CHECK(tools.constraint->complete(called));
  CHECK(tools.allowed(called) == std::vector<TokenId>{0});
  CHECK(tools.allowed(tools.after({2, 1})).empty());
}

TEST_CASE("A call for which too few tokens are left goes on until it is cut") {
  const Setting tools;
  CHECK(tools.allowed(tools.after({2}), 1) == std::vector<TokenId>{4});
}
