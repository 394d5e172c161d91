#include "models/checkpoint/packed_parts.h"

#include <cstdio>
#include <functional>

#include "data/base/atomic_file.h"
#include "models/checkpoint/checkpoint.h"
#include "models/gguf/save_gguf.h"
#include "models/inference/packed_decoder.h"
#include "models/inference/packed_engine.h"
#include "models/inference/save_packed.h"
#include "tests/models/inference/packed_outputs.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

using namespace zoo;
using kernels::WeightType;
namespace fs = std::filesystem;

namespace {

// The checkpoint's weights, packed, in a directory of their own.
class PackedDirectory {
 public:
  PackedDirectory(const ModelPath& source, WeightType type, const ModelPath& name = "the source") {
    save_packed(read_checkpoint_config(source), type, name, path());
  }

  const fs::path& path() const { return directory_.path(); }
  fs::path file() const { return path() / PackedParts::kFile; }

  void set(const std::string& key, const nlohmann::json& value) const {
    nlohmann::json config = nlohmann::json::parse(read_file(path() / "config.json"));
    config[key] = value;
    write_file(path() / "config.json", config.dump());
  }

  // Writes the file again, changed.
  void change(const std::function<void(NamedTensors&, std::map<std::string, std::string>&)>& change) const {
    const SafetensorsFile before(file());
    NamedTensors tensors;
    for (const std::string& name : before.names()) tensors.emplace_back(name, before.tensor(name).clone());
    std::map<std::string, std::string> metadata = before.metadata();
    change(tensors, metadata);
    write_safetensors(file(), tensors, metadata);
  }

  // The message with which loading and packing are refused.
  std::string fault() const {
    return test::error_of([&] {
      const LoadedModel loaded = load_model(path(), {.stored = true});
      pack(*loaded.model, {.weights = WeightType::kInt8, .stored = loaded.stored});
    });
  }

 private:
  test::TemporaryDirectory directory_;
};

void check_equal(const fs::path& source, WeightType type, at::ScalarType dtype = at::kFloat) {
  const PackedDirectory packed(source, type);
  const NamedTensors expected = test::packed_outputs(source, type, dtype, true),
                     found = test::packed_outputs(packed.path(), type, dtype, true);
  REQUIRE(found.size() == expected.size());
  REQUIRE(!found.empty());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(source, static_cast<int>(type), found[i].first);
    CHECK(expected[i].second.abs().max().item<double>() > 0);
    CHECK(found[i].second.equal(expected[i].second));
  }
}

const fs::path kLlama = fs::path(ZOO_SOURCE_DIR) / "tests/golden/llama/plain";

}  // namespace

TEST_CASE("A model of packed weights computes what packing its source does, bit for bit") {
  const std::vector<fs::path> sources = test::golden_checkpoints();
  CHECK(sources.size() > 60);
  for (const fs::path& source : sources)
    for (const WeightType type : test::kWeightTypes) check_equal(source, type);
}

TEST_CASE("A model without packed kernels is not written packed") {
  const test::TemporaryDirectory source, target;
  for (const char* name : {"config.json", "model.safetensors"}) fs::copy_file(kLlama / name, source / name);
  nlohmann::json config = nlohmann::json::parse(read_file(source / "config.json"));
  config["rope_parameters"].update({{"rope_type", "dynamic"}, {"factor", 2.0}});
  write_file(source / "config.json", config.dump());
  const auto save = [&] {
    save_packed(read_checkpoint_config(source.path()), WeightType::kInt8, "", target.path());
  };
  CHECK_THAT(test::error_of(save),
             Catch::Contains("no packed kernels for rope_scaling = dynamic; use 'format' huggingface"));
}

TEST_CASE("Weights of 16 bits and GGUF's blocks are packed into files as they are into memory") {
  const test::TemporaryDirectory directory;
  const LoadedModel llama = load_model(kLlama);
  save_model(*llama.model, *llama.family, llama.head, directory.path(), {.dtype = at::kHalf});
  check_equal(directory.path(), WeightType::kInt8);
  CHECK(SafetensorsFile(PackedDirectory(directory.path(), WeightType::kInt4).file())
            .entry("embeddings.token.weight")
            .dtype == at::kHalf);
  for (const char* type : {"F16", "Q8_0"}) {
    save_gguf(*llama.model, *llama.family, llama.head, directory / "model.gguf", type, {});
    for (const WeightType weights : test::kWeightTypes) check_equal(directory / "model.gguf", weights);
  }
}

TEST_CASE("Panels of packed weights begin at multiples of 64 bytes of the file, which maps them") {
  for (const WeightType type : test::kWeightTypes) {
    const PackedDirectory packed(kLlama, type);
    const SafetensorsFile file(packed.file());
    CHECK(file.metadata().at("weights") == name_of(type));
    for (const std::string& name : file.names()) {
      if (name.find(".packed") == std::string::npos) continue;
      CAPTURE(name);
      CHECK(reinterpret_cast<std::uintptr_t>(file.tensor(name).const_data_ptr()) % 64 == 0);
    }
  }
}

TEST_CASE("Packed weights are not copied: a change of the mapped file changes the model") {
  const PackedDirectory packed(kLlama, WeightType::kFloat32);
  const LoadedModel loaded = load_model(packed.path(), {.stored = true});
  const auto model = pack(*loaded.model, {.stored = loaded.stored});
  const auto logits = [&] { return model->begin(1, 4)->read({{5}}, DecodingSession::Logits::kAll).clone(); };
  const at::Tensor before = logits();
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(packed.file().c_str(), "r+b"),
                                                             std::fclose);
  const SafetensorsFile opened(packed.file());
  const std::size_t data = fs::file_size(packed.file()) - opened.entry(opened.names().back()).end,
                    begin = data + opened.entry("stack.blocks.0.feed_forward.down.weight.packed").begin;
  REQUIRE(std::fseek(file.get(), static_cast<long>(begin), SEEK_SET) == 0);
  const float large = 100;
  REQUIRE(std::fwrite(&large, sizeof large, 1, file.get()) == 1);
  std::fflush(file.get());
  CHECK(!logits().equal(before));
}

TEST_CASE("A file of packed weights that does not fit is refused by name") {
  const PackedDirectory packed(kLlama, WeightType::kInt8);
  CHECK(packed.fault() == "");
  SECTION("another layout, with the command that renews it") {
    packed.change([](auto&, auto& metadata) { metadata["layout"] = "0"; });
    CHECK_THAT(packed.fault(), Catch::Contains("layout '0'") &&
                                   Catch::Contains("tzoo export --model the source --format packed --weights "
                                                   "int8 --output " +
                                                   packed.path().string()));
  }
  SECTION("a header that is none of ours") {
    packed.change([](auto&, auto& metadata) { metadata["format"] = "pt"; });
    CHECK_THAT(packed.fault(), Catch::Contains("does not say that it holds packed weights"));
  }
  SECTION("another type") {
    const PackedDirectory other(kLlama, WeightType::kInt4);
    CHECK_THAT(other.fault(), Catch::Contains("packed.safetensors") &&
                                  Catch::Contains(".qkv.weight.packed") && Catch::Contains("expected U8"));
  }
  SECTION("a truncated file") {
    fs::resize_file(packed.file(), fs::file_size(packed.file()) - 64);
    CHECK_THAT(packed.fault(), Catch::Contains("packed.safetensors") && Catch::Contains("truncated"));
  }
  SECTION("a missing part") {
    packed.change([](NamedTensors& tensors, auto&) {
      std::erase_if(tensors, [](const auto& entry) {
        return entry.first == "stack.blocks.0.attention.out.weight.packed";
      });
    });
    CHECK_THAT(packed.fault(), Catch::Contains("stack.blocks.0.attention.out.weight.packed"));
  }
  SECTION("a missing norm") {
    packed.change([](NamedTensors& tensors, auto&) {
      std::erase_if(tensors, [](const auto& entry) { return entry.first == "stack.final_norm.weight"; });
    });
    CHECK_THAT(packed.fault(), Catch::Contains("missing 1: stack.final_norm.weight"));
  }
  SECTION("a part that nobody asks for") {
    packed.change([](NamedTensors& tensors, auto&) { tensors.emplace_back("stack.left", at::zeros({64})); });
    CHECK_THAT(packed.fault(), Catch::Contains("unexpected 1: stack.left"));
  }
  SECTION("a configuration of fewer layers") {
    packed.set("num_hidden_layers", 1);
    CHECK_THAT(packed.fault(), Catch::Contains("unexpected") && Catch::Contains("stack.blocks.1."));
  }
  SECTION("a configuration of another width") {
    packed.set("intermediate_size", 1000);
    CHECK_THAT(packed.fault(),
               Catch::Contains("does not fit config.json") && Catch::Contains(".up.weight.packed"));
  }
  SECTION("weights of modules beside it") {
    fs::copy_file(kLlama / "model.safetensors", packed.path() / "model.safetensors");
    CHECK_THAT(packed.fault(), Catch::Contains("expected one of them"));
  }
}

TEST_CASE("Modules refuse a directory of packed weights and name its source") {
  const PackedDirectory packed(kLlama, WeightType::kInt8);
  const auto refused = Catch::Contains(
      "packed for inference, which modules do not read; expected the model "
      "that they were exported from, the source");
  CHECK_THAT(test::error_of([&] { load_model(packed.path()); }), refused);
  CHECK_THAT(test::error_of([&] { inspect_weights(read_checkpoint_config(packed.path())); }), refused);
  const LoadedModel loaded = load_model(packed.path(), {.stored = true});
  CHECK_THAT(test::error_of([&] { loaded.stored->load_all(); }), refused);
}

TEST_CASE("A directory of packed weights names the adapter that was merged into its source") {
  const fs::path peft = fs::path(ZOO_SOURCE_DIR) / "tests/golden/peft";
  const ModelPath source(peft / "bases/llama", peft / "llama-rslora"),
      name(fs::path("the source"), fs::path("its adapter"));
  const PackedDirectory packed(source, WeightType::kInt8, name);
  CHECK(SafetensorsFile(packed.file()).metadata().at("adapter") == "its adapter");
  CHECK_THAT(test::error_of([&] { load_model(packed.path()); }),
             Catch::Contains("exported from, the source --adapter its adapter"));
  packed.change([](auto&, auto& metadata) { metadata["layout"] = "0"; });
  CHECK_THAT(packed.fault(),
             Catch::Contains("--model the source --adapter its adapter --format packed --weights int8"));
  CHECK_FALSE(
      SafetensorsFile(PackedDirectory(kLlama, WeightType::kInt8).file()).metadata().contains("adapter"));
}
