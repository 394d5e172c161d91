#include "models/checkpoint/stored_weights.h"

#include <algorithm>
#include <fstream>

#include "data/base/atomic_file.h"
#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/named_tensors.h"
#include "models/gguf/save_gguf.h"
#include "tests/models/checkpoint/checkpoint_support.h"
#include "tests/models/inference/packed_outputs.h"
#include "tests/models/kernels/unpacked.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

using namespace zoo;
using kernels::WeightType;
namespace fs = std::filesystem;

namespace {

void check_stored(const fs::path& path, at::ScalarType dtype = at::kFloat) {
  for (const WeightType type : test::kWeightTypes) {
    const NamedTensors expected = test::packed_outputs(path, type, dtype, false),
                       found = test::packed_outputs(path, type, dtype, true);
    REQUIRE(found.size() == expected.size());
    REQUIRE(!found.empty());
    for (std::size_t i = 0; i < found.size(); ++i) {
      CAPTURE(path, static_cast<int>(type), dtype, found[i].first);
      CHECK(expected[i].second.abs().max().item<double>() > 0);
      CHECK(found[i].second.equal(expected[i].second));
    }
  }
}

// Heads of 24 rows, so that a panel of 64 ends inside one.
std::shared_ptr<Model> model_of_blocks(const Family& family) {
  TransformerConfig config = family.base;
  config.vocab_size = 1100;
  config.hidden_size = 96;
  config.num_layers = 2;
  config.num_heads = 4;
  if (config.num_kv_heads > 0 || family.model_type == "llama") config.num_kv_heads = 2;
  config.intermediate_size = 160;
  config.max_positions = 16;
  return test::random_model(family.model_type, config, Head::kCausalLm, 3);
}

}  // namespace

TEST_CASE("Weights packed from their files are those packed from modules, for every family and head") {
  const std::vector<fs::path> checkpoints = test::golden_checkpoints();
  CHECK(checkpoints.size() > 60);
  for (const fs::path& path : checkpoints) check_stored(path);
}

TEST_CASE("Weights of 16 bits are packed from their files as from modules") {
  const at::ScalarType type = GENERATE(at::kBFloat16, at::kHalf);
  for (const char* name : {"gpt2", "llama", "gpt_neox", "gptj", "phi3", "bert", "t5", "bart"}) {
    const auto& family = find_family(name);
    for (const fs::path& path : test::golden_checkpoints()) {
      if (path.parent_path().filename() != name) continue;
      const LoadedModel loaded = load_model(path);
      const test::TemporaryDirectory directory;
      save_model(*loaded.model, family, loaded.head, directory.path(), {.dtype = type});
      check_stored(directory.path());
      if (family.base.shape == Shape::kEncoder) check_stored(directory.path(), at::kBFloat16);
    }
  }
}

TEST_CASE("Weights of GGUF files are packed from their blocks as from modules") {
  const std::string type = GENERATE("F32", "F16", "BF16", "Q8_0", "Q4_0");
  for (const char* name : {"llama", "gpt2", "qwen2"}) {
    const Family& family = find_family(name);
    const test::TemporaryDirectory directory;
    const fs::path path = directory / "model.gguf";
    save_gguf(*model_of_blocks(family), family, Head::kCausalLm, path, type, {});
    check_stored(path);
  }
}

TEST_CASE("Blocks of GGUF files stay as they are, whatever the order of their rows") {
  const std::string type = GENERATE("Q8_0", "Q4_0");
  for (const char* name : {"llama", "gpt2", "qwen2"}) {
    const Family& family = find_family(name);
    const test::TemporaryDirectory directory;
    const fs::path path = directory / "model.gguf";
    save_gguf(*model_of_blocks(family), family, Head::kCausalLm, path, type, {});
    const LoadedModel loaded = load_model(path), stored = load_model(path, {.stored = true});
    REQUIRE(stored.stored->has_blocks());
    const auto expected = loaded.model->named_parameters();
    std::size_t packed = 0;
    for (const auto& parameter : stored.model->named_parameters()) {
      const WeightRows rows = stored.stored->rows_of(parameter.value());
      if (parameter.value().dim() != 2 || rows.block_types(0, rows.size(0)).empty()) continue;
      CAPTURE(name, type, parameter.key());
      const inference::PackedLinear linear(parameter.value(), rows, {}, {.weights = WeightType::kBlocks});
      CHECK(linear.weight().type == WeightType::kBlocks);
      const at::Tensor wanted = expected[parameter.key()];
      at::Tensor found = at::empty_like(wanted);
      std::ranges::copy(test::unpacked(linear.weight()), found.data_ptr<float>());
      CHECK(found.equal(wanted));
      ++packed;
    }
    CHECK(packed >= 9);  // the token embedding and four matrices of each of two layers
  }
}

TEST_CASE("A type that GGUF files are not written in is refused") {
  const test::TemporaryDirectory directory;
  const auto fault = [&](const char* type) {
    return test::error_of([&] {
      save_gguf(*test::random_gpt(test::small_config(), 1), find_family("gpt2"), Head::kCausalLm,
                directory / "model.gguf", type, {});
    });
  };
  CHECK(fault("Q9") == "'type': expected one of F32, F16, BF16, Q8_0, Q4_0, got 'Q9'");
  CHECK_THAT(fault("Q6_K"), Catch::StartsWith("'type': expected one of"));  // which are read
}

TEST_CASE("Weights that stay in their files take no memory in the modules, and load_all() reads them") {
  const test::Checkpoint checkpoint;
  const LoadedModel whole = load_model(checkpoint.path()),
                    lacking = load_model(checkpoint.path(), {.stored = true});
  CHECK(lacking.report.loaded == whole.report.loaded);
  CHECK(whole.stored == nullptr);
  for (const auto& item : lacking.model->named_parameters()) {
    CAPTURE(item.key());
    const bool matrix = item.value().dim() == 2;
    CHECK(lacking.stored->contains(item.value()) == matrix);
    if (matrix) CHECK(item.value().storage().nbytes() == sizeof(float));
  }
  lacking.stored->load_all();
  for (const auto& item : whole.model->named_parameters()) {
    CAPTURE(item.key());
    CHECK(lacking.model->named_parameters()[item.key()].equal(item.value()));
  }
}

TEST_CASE("A checkpoint whose weights stay in their files is refused as one that is read") {
  test::Checkpoint checkpoint;
  checkpoint.find("transformer.h.1.mlp.c_fc.weight") = at::zeros({12, 19});
  checkpoint.remove_if([](const std::string& name) { return name == "transformer.wpe.weight"; });
  checkpoint.write();
  const std::string fault = checkpoint.fault();
  CHECK_THAT(fault,
             Catch::Contains("transformer.wpe.weight") &&
                 Catch::Contains("transformer.h.1.mlp.c_fc.weight: expected [12, 20], found [12, 19]"));
  CHECK(test::error_of([&] { load_model(checkpoint.path(), {.stored = true}); }) == fault);
}
