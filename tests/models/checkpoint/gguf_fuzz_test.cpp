#include <cstdlib>
#include <random>

#include "data/base/atomic_file.h"
#include "data/base/gguf_writer.h"
#include "models/checkpoint/checkpoint.h"
#include "models/gguf/save_gguf.h"
#include "models/inference/packed_decoder.h"
#include "models/registry.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/write_bytes.h"
#include "tokenizer/tokenizer.h"

using namespace zoo;

namespace {

GgufMetadata small_tokenizer() {
  const std::vector<std::string> tokens{"<unk>", "<s>", "</s>", "a", "b", "ab", "\u2581", "<0x0A>"};
  return {{"tokenizer.ggml.model", "llama"},
          {"tokenizer.ggml.tokens", tokens},
          {"tokenizer.ggml.scores", std::vector<float>{0, 0, 0, -3, -2, -1, -4, 0}},
          {"tokenizer.ggml.token_type", std::vector<std::int32_t>{2, 3, 3, 1, 1, 1, 1, 6}}};
}

void write_model(const std::filesystem::path& path, const std::string& family_name, const std::string& type) {
  const Family& family = find_family(family_name);
  TransformerConfig config = family.base;
  config.vocab_size = 8;
  config.hidden_size = 32;
  config.num_layers = config.num_heads = 2;
  config.num_kv_heads = family_name == "llama" ? 1 : 2;
  config.head_dim = 16;
  config.intermediate_size = 32;
  config.max_positions = 8;
  const auto model = build_model(family, config, Head::kCausalLm, 1);
  save_gguf(*model, family, Head::kCausalLm, path, type, small_tokenizer());
}

// True if the file loads, runs and encodes a text.
bool runs(const std::filesystem::path& path) {
  try {
    const LoadedModel loaded = load_model(path);
    const at::NoGradGuard no_grad;
    loaded.model->forward({.input_ids = at::tensor({1, 3, 5}, at::kLong).view({1, 3})});
    const LoadedModel stored = load_model(path, {.stored = true});
    if (can_pack(*stored.model))
      pack(*stored.model, {.weights = kernels::WeightType::kBlocks, .stored = stored.stored})
          ->begin(1, 4)
          ->read({{1, 3, 5}}, DecodingSession::Logits::kAll);
    load_tokenizer(path)->encode("ab a", EncodeOptions{});
    return true;
  } catch (const Error& error) {
    REQUIRE(std::string(error.what()).find(path.filename().string()) != std::string::npos);
    return false;
  }
}

// One to three of: another byte, a bit, a byte more, a byte less, an end cut off, eight bytes of a number.
std::string damaged(std::string bytes, std::mt19937& random, std::size_t header) {
  const auto below = [&](std::size_t bound) { return random() % bound; };
  for (std::size_t changes = 1 + below(3); changes > 0 && !bytes.empty(); --changes) {
    const std::size_t at = below(below(8) == 0 ? bytes.size() : std::min(header, bytes.size()));
    switch (below(8)) {
      case 0:
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), static_cast<char>(random()));
        break;
      case 1: bytes.erase(at, 1); break;
      case 2: bytes.resize(at); break;
      case 3:
        for (std::size_t i = at; i < std::min(at + 8, bytes.size()); ++i)
          bytes[i] = static_cast<char>(below(2) == 0 ? 0xFF : random());
        break;
      case 4:
      case 5: bytes[at] = static_cast<char>(bytes[at] ^ 1 << below(8)); break;
      default: bytes[at] = static_cast<char>(random());
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("a damaged GGUF file runs or is refused by its name, and never does harm") {
  const test::TemporaryDirectory directory;
  const auto path = directory / "fuzz.gguf";
  const char* more = std::getenv("ZOO_FUZZ_FILES");
  const int files = more == nullptr ? 400 : std::atoi(more);
  for (const auto& [family, type] : {std::pair("llama", "Q8_0"), {"gpt2", "F16"}, {"gemma", "Q4_0"}}) {
    write_model(path, family, type);
    REQUIRE(runs(path));
    const std::string whole = read_file(path);
    const std::size_t data = GgufFile(path).tensors().front().begin;
    std::mt19937 random(20261122);
    int refused = 0;
    for (int i = 0; i < files; ++i) {
      test::write_bytes(path, damaged(whole, random, data));
      CAPTURE(family, i);
      if (!runs(path)) ++refused;
    }
    CHECK(refused > files / 2);
    CHECK(refused < files);
  }
}

TEST_CASE("a GGUF file that is cut off anywhere is refused") {
  const test::TemporaryDirectory directory;
  const auto path = directory / "cut.gguf";
  write_model(path, "llama", "Q8_0");
  const std::string whole = read_file(path);
  // The last tensor needs no padding after it.
  const std::size_t end = GgufFile(path).tensors().back().end;
  for (std::size_t size = 0; size < end; size += size < 4000 ? 1 : 97) {
    test::write_bytes(path, whole.substr(0, size));
    CAPTURE(size);
    REQUIRE_FALSE(runs(path));
  }
}
