#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "data/base/atomic_file.h"
#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/named_tensors.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"

using namespace zoo;
namespace fs = std::filesystem;

namespace {

const std::set<std::string> kInputs{"input_ids",         "attention_mask", "token_type_ids",
                                    "decoder_input_ids", "labels",         "next_sentence_label"};

fs::path golden_folder() { return fs::path(ZOO_SOURCE_DIR) / "tests/golden"; }

// A checkpoint that transformers wrote, and what it computed from it.
struct Case {
  explicit Case(const fs::path& path) : directory(path), expected(path / "expected.safetensors") {
    for (const std::string& name : expected.names()) {
      if (!name.starts_with("grad.")) continue;
      largest_gradient = std::max(largest_gradient, expected.tensor(name).abs().max().item<double>());
    }
  }

  Head head() const { return head_named(expected.metadata().at("head")); }

  ModelInputs inputs(bool show_all) const {
    const auto given = [&](const char* name) {
      return expected.contains(name) ? expected.tensor(name) : at::Tensor();
    };
    return {.input_ids = given("input_ids"),
            .attention_mask = given("attention_mask"),
            .token_type_ids = given("token_type_ids"),
            .decoder_input_ids = given("decoder_input_ids"),
            .labels = given("labels"),
            .sentence_labels = given("next_sentence_label"),
            .loss = {.router = true},
            .output_hidden_states = show_all,
            .output_attentions = show_all};
  }

  // Zero where the query has no key to see (left padding under a causal mask): its answer is not defined.
  // Hugging Face spreads such a query's attention evenly, we give zeros.
  at::Tensor comparable(const std::string& kind, const at::Tensor& tensor) const {
    if (kind == "loss" || kind == "grad" || tensor.dim() < 3) return tensor;
    const at::Tensor seen = expected.tensor("attention_mask").cumsum(-1).gt(0).to(at::kFloat).unsqueeze(-1);
    return tensor * (kind == "attentions" ? seen.unsqueeze(1) : seen);
  }

  double error(const std::string& name, const at::Tensor& found, bool causal) const {
    const std::string kind = name.substr(0, name.find('.'));
    const at::Tensor wanted = expected.tensor(name);
    if (kind == "grad") return gradient_error(found, wanted);
    return causal ? test::relative_error(comparable(kind, found), comparable(kind, wanted))
                  : test::relative_error(found, wanted);
  }

  // A gradient that is zero except for rounding (the bias of keys moves no softmax) is measured by the
  // largest of all, a tenth of it.
  double gradient_error(const at::Tensor& found, const at::Tensor& wanted) const {
    if (wanted.abs().max().item<double>() >= 1e-5 * largest_gradient)
      return test::relative_error(found, wanted);
    return test::largest_difference(found, wanted) / (largest_gradient / 10);
  }

  fs::path directory;
  SafetensorsFile expected;
  double largest_gradient = 0;
};

std::vector<fs::path> cases_of(const std::string& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(golden_folder() / folder)) {
    if (fs::exists(entry.path() / "expected.safetensors")) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// The worst errors of one family with one head, a row of the table.
struct Row {
  double outputs = 0, hidden_states = 0, attentions = 0, gradients = 0;
  bool has_gradients = false;

  void add(const std::string& name, double error) {
    double* column = &outputs;
    if (name.find("hidden_states.") != std::string::npos) column = &hidden_states;
    if (name.find("attentions.") != std::string::npos) column = &attentions;
    if (name.starts_with("grad.")) {
      column = &gradients;
      has_gradients = true;
    }
    *column = std::max(*column, error);
  }
};

std::string cell(double error) {
  char text[16];
  std::snprintf(text, sizeof text, "%.0e", error);
  return text;
}

using Table = std::map<std::string, std::map<std::string, Row>>;

void print(const Table& table) {
  std::puts("| family | head | outputs and loss | hidden states | attentions | gradients |");
  std::puts("|---|---|---|---|---|---|");
  for (const auto& [family, rows] : table) {
    for (const auto& [head, row] : rows) {
      const std::string gradients = row.has_gradients ? cell(row.gradients) : "no loss";
      std::printf("| %s | %s | %s | %s | %s | %s |\n", family.c_str(), head.c_str(),
                  cell(row.outputs).c_str(), cell(row.hidden_states).c_str(), cell(row.attentions).c_str(),
                  gradients.c_str());
    }
  }
}

// Runs the case; with everything shown, or as in training: without attention maps the fused kernels run.
void compare(const Case& golden, bool show_all, Row& row) {
  const LoadedModel loaded = load_model(golden.directory, {.trainable = true, .head = golden.head()});
  const ModelOutput output = loaded.model->forward(golden.inputs(show_all));
  NamedTensors tensors = tensors_of(output, loaded.head);
  if (output.loss.defined()) {
    output.loss.backward();
    for (auto& entry : gradients_of(loaded)) tensors.push_back(std::move(entry));
  }
  const bool causal = loaded.model->config().shape == Shape::kDecoder;
  std::set<std::string> compared;
  for (const auto& [name, tensor] : tensors) {
    CAPTURE(name);
    REQUIRE(golden.expected.contains(name));
    const double error = golden.error(name, tensor, causal);
    CHECK(error <= (name.starts_with("grad.") ? 1e-4 : 1e-5));
    row.add(name, error);
    compared.insert(name);
  }
  for (const std::string& name : golden.expected.names()) {
    CAPTURE(name);
    const bool map_or_state =
        name.find("attentions.") != std::string::npos || name.find("hidden_states.") != std::string::npos;
    if (kInputs.count(name) == 0 && (show_all || !map_or_state)) CHECK(compared.count(name) == 1);
  }
}

}  // namespace

TEST_CASE("every family with every head computes what transformers computes: the parity table") {
  const std::string readme = read_file(fs::path(ZOO_SOURCE_DIR) / "models/README.md");
  Table table;
  for (const Family& family : families()) {
    const std::string& name = family.model_type;
    if (name.starts_with("tutorial-")) continue;  // transformers has none; test_demo_verb.py holds them
    for (const fs::path& directory : cases_of(name)) {
      CAPTURE(directory);
      const Case golden(directory);
      Row& row = table[name][name_of(golden.head())];
      compare(golden, /*show_all=*/true, row);
      compare(golden, /*show_all=*/false, row);
    }
    for (const auto& entry : family.heads) {
      CAPTURE(name, name_of(entry.head));
      CHECK(table[name].count(name_of(entry.head)) == 1);
      // The figures there are those of one machine; a row that is missing is not.
      CHECK_THAT(readme, Catch::Contains("| " + name + " | " + name_of(entry.head) + " | "));
    }
  }
  print(table);
}
