#include "tokenizer/tokenizer_json.h"

#include <array>

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "data/base/json_file.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/byte_tokenizer.h"
#include "tokenizer/char_tokenizer.h"
#include "tokenizer/json_section.h"
#include "tokenizer/utf8.h"

namespace zoo {
namespace {

using nlohmann::json;

// The vocabulary as pieces[id]. Throws Error unless its ids are 0 to n - 1, each once.
std::vector<std::string> read_vocabulary(const JsonSection& model) {
  const json& vocabulary = model.require("vocab", JsonType::object);
  if (vocabulary.empty()) model.fail("vocab", "is empty");
  std::vector<const std::string*> pieces(vocabulary.size(), nullptr);
  for (const auto& [piece, id] : vocabulary.items()) {
    const std::string key = "vocab[" + json(piece).dump() + "]";
    const bool in_range = id.is_number_unsigned() && id.get<std::uint64_t>() < pieces.size();
    if (!in_range) {
      model.fail(key, "is ", id.is_structured() ? id.type_name() : id.dump(),
                 ": expected an integer from 0 to ", pieces.size() - 1, ", as there are ", pieces.size(),
                 " entries");
    }
    const std::string*& place = pieces[id.get<std::size_t>()];
    if (place != nullptr)
      model.fail(key, "is ", id.dump(), ", which is also the id of ", json(*place).dump());
    place = &vocabulary.find(piece).key();
  }
  std::vector<std::string> result;
  for (const std::string* piece : pieces) result.push_back(*piece);
  return result;
}

// What changes the text or the ids around a model, and would be lost here.
void require_nothing_else(const JsonSection& root, const JsonSection& model) {
  if (const std::string type = root.type_of("normalizer"); type != "none") {
    root.fail("normalizer", "of type ", type, " is not supported yet with this model");
  }
  if (root.find("added_tokens") != nullptr) {
    const json& added = root.require("added_tokens", JsonType::array);
    if (!added.empty())
      root.fail("added_tokens", "is not supported yet with this model: expected an empty array");
  }
  for (const char* key : {"unk_token", "continuing_subword_prefix", "end_of_word_suffix"}) {
    if (model.find(key) == nullptr) continue;
    const json& value = model.require(key, JsonType::string);
    if (!value.get_ref<const std::string&>().empty())
      model.fail(key, "is not supported with this model: expected null");
  }
  if (const json* dropout = model.find("dropout"); dropout != nullptr && *dropout != 0) {
    model.fail("dropout", "is not supported: expected null");
  }
}

void require_type(const JsonSection& root, const char* key, std::string_view expected) {
  const std::string type = root.type_of(key);
  if (type != expected) root.fail(key, "has type ", type, ": expected ", expected, " with this model");
}

bool is_bpe_without_merges(const JsonSection& root) {
  if (root.type_of("model") != "BPE") return false;
  const JsonSection model = root.section("model");
  return model.require("merges", JsonType::array).empty() && !model.flag("byte_fallback", false);
}

bool is_char(const JsonSection& root) {
  return is_bpe_without_merges(root) && root.type_of("pre_tokenizer") == "none";
}

std::unique_ptr<Tokenizer> read_char(const JsonSection& root) {
  const JsonSection model = root.section("model");
  require_nothing_else(root, model);
  require_type(root, "post_processor", "none");
  require_type(root, "decoder", "Fuse");
  std::vector<char32_t> characters;
  for (const std::string& piece : read_vocabulary(model)) {
    std::size_t end = 0;
    const char32_t c = piece.empty() ? 0 : next_code_point(piece, end);
    if (piece.empty() || end != piece.size()) {
      model.fail("vocab[" + json(piece).dump() + "]",
                 "is not one character, and there are no merges to build it");
    }
    characters.push_back(c);
  }
  return std::make_unique<CharTokenizer>(std::move(characters));
}

bool is_byte(const JsonSection& root) {
  return is_bpe_without_merges(root) && root.type_of("pre_tokenizer") == "ByteLevel";
}

std::unique_ptr<Tokenizer> read_byte(const JsonSection& root) {
  const JsonSection model = root.section("model");
  require_nothing_else(root, model);
  require_type(root, "decoder", "ByteLevel");
  // A ByteLevel post-processor moves offsets only; without merges it does not matter where use_regex cuts.
  if (root.type_of("post_processor") != "none") require_type(root, "post_processor", "ByteLevel");
  const JsonSection pre_tokenizer = root.section("pre_tokenizer");
  pre_tokenizer.flag("use_regex", true);
  if (pre_tokenizer.flag("add_prefix_space", true)) {
    pre_tokenizer.fail("add_prefix_space", "is not supported with this model: expected false");
  }
  const std::vector<std::string> pieces = read_vocabulary(model);
  if (pieces.size() != 256)
    model.fail("vocab", "has ", pieces.size(), " entries: expected one for each of 256 bytes");
  for (std::size_t byte = 0; byte < pieces.size(); ++byte) {
    std::string expected;
    append_utf8(expected, byte_level_character(static_cast<unsigned char>(byte)));
    if (pieces[byte] != expected) {
      model.fail("vocab", "gives id ", byte, " to ", json(pieces[byte]).dump(), ": expected ",
                 json(expected).dump(), ", the character of that byte");
    }
  }
  return std::make_unique<ByteTokenizer>();
}

struct Kind {
  bool (*matches)(const JsonSection& root);
  std::unique_ptr<Tokenizer> (*read)(const JsonSection& root);
};

constexpr std::array<Kind, 2> kKinds = {{{is_char, read_char}, {is_byte, read_byte}}};

std::unique_ptr<Tokenizer> read_any(const JsonSection& root) {
  if (root.find("version") != nullptr) {
    const json& version = root.require("version", JsonType::string);
    if (version != "1.0") root.fail("version", "is ", version.dump(), ": expected \"1.0\"");
  }
  root.section("model").require("type", JsonType::string);
  for (const Kind& kind : kKinds) {
    if (kind.matches(root)) return kind.read(root);
  }
  throw Error(root.file(), ": model type ", root.type_of("model"), " with pre_tokenizer ",
              root.type_of("pre_tokenizer"),
              " is not supported yet: expected BPE without merges and with pre_tokenizer none (char) or "
              "ByteLevel (byte)");
}

}  // namespace

std::unique_ptr<Tokenizer> read_tokenizer_json(const std::filesystem::path& path) {
  try {
    const json root = read_json(path);
    return read_any(JsonSection(path, "", root));
  } catch (const json::exception& error) {
    throw Error(path, ": ", error.what());
  }
}

}  // namespace zoo
