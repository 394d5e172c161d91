#include "models/pt2/export.h"

#include <map>

#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <caffe2/serialize/inline_container.h>
#include <nlohmann/json.hpp>
#include <torch/csrc/export/pt2_archive_constants.h>
#include <torch/csrc/jit/serialization/pickler.h>

#include "models/formats/torch_file.h"
#include "models/graph/passes.h"
#include "models/pt2/program.h"

namespace zoo::pt2 {
namespace {

// A program of an archive. torch.export.load() returns the one called "model".
struct NamedGraph {
  std::string name;
  graph::Graph graph;
};

namespace names = torch::_export::archive_spec;
using Json = nlohmann::ordered_json;
using Writer = caffe2::serialize::PyTorchStreamWriter;

std::string with_name(std::string_view format, const std::string& name) {
  std::string path(format);
  return path.replace(path.find("{}"), 2, name);
}

void write_text(Writer& writer, const std::string& path, std::string_view text) {
  writer.writeRecord(path, text.data(), text.size());
}

using Paths = std::map<const c10::TensorImpl*, std::string>;

// Tensors of one kind and a program's table of their names. Those in `written` are not written again.
void write_tensors(Writer& writer, const NamedGraph& program, bool constants, Paths& written) {
  const std::string folder(constants ? names::CONSTANTS_DIR : names::WEIGHTS_DIR);
  const std::string prefix(constants ? names::TENSOR_CONSTANT_FILENAME_PREFIX
                                     : names::WEIGHT_FILENAME_PREFIX);
  Json config = Json::object();
  for (const graph::Weight& weight : program.graph.weights) {
    if ((weight.kind == graph::Weight::Kind::kConstant) != constants) continue;
    std::string& path = written[weight.tensor.unsafeGetTensorImpl()];
    const at::Tensor tensor = weight.tensor.detach().contiguous();
    if (path.empty()) {
      path = prefix + std::to_string(written.size() - 1);
      const at::Tensor host = tensor.cpu();
      writer.writeRecord(folder + path, host.const_data_ptr(), host.nbytes());
    }
    const bool parameter = weight.kind == graph::Weight::Kind::kParameter;
    config[weight.name] = {{"path_name", path},
                           {"is_param", parameter},
                           {"use_pickle", false},
                           {"tensor_meta", tensor_meta(tensor, parameter)}};
  }
  write_text(
      writer,
      with_name(constants ? names::CONSTANTS_CONFIG_FILENAME_FORMAT : names::WEIGHTS_CONFIG_FILENAME_FORMAT,
                program.name),
      Json{{"config", config}}.dump());
}

// What torch.save writes. torch::jit::pickle_save adds types of containers, which torch.load mistrusts.
std::vector<char> torch_save(const c10::IValue& value) {
  std::vector<char> bytes;
  const auto append = [&](const void* data, std::size_t size) {
    const auto* first = static_cast<const char*>(data);
    bytes.insert(bytes.end(), first, first + size);
    return size;
  };
  std::string pickle;
  torch::jit::Pickler pickler([&](const char* data, std::size_t size) { pickle.append(data, size); }, nullptr,
                              nullptr, nullptr, nullptr, /*tag_aggregates=*/false);
  pickler.protocol();
  pickler.pushIValue(value);
  pickler.stop();
  Writer writer(append);
  write_text(writer, "data.pkl", pickle);
  std::size_t count = 0;
  for (const at::Tensor& tensor : pickler.tensorData())
    writer.writeRecord("data/" + std::to_string(count++), tensor.const_data_ptr(), tensor.nbytes());
  writer.writeEndOfFile();
  return bytes;
}

// (inputs, {})
std::vector<char> sample_inputs(const graph::Graph& graph) {
  std::vector<c10::IValue> inputs;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    std::vector<std::int64_t> sizes;
    for (const graph::Size& size : graph.inputs[i].sizes) sizes.push_back(size.value(graph.sample));
    inputs.emplace_back(at::ones(sizes, graph.inputs[i].dtype).remainder(graph.inputs[i].bound));
  }
  const c10::impl::GenericDict keywords(c10::StringType::get(), c10::AnyType::get());
  return torch_save(
      c10::ivalue::Tuple::create({c10::ivalue::Tuple::create(std::move(inputs)), c10::IValue(keywords)}));
}

// Writes the archive of torch.export.save, atomically: programs with their weights, constants and sample
// inputs. What several programs share is written once.
void write_archive(const std::vector<NamedGraph>& programs, const std::filesystem::path& path) {
  std::vector<std::string> texts;  // before the file, since what has no text is refused
  for (const NamedGraph& one : programs) texts.push_back(program(one.graph).dump());
  write_torch_file(path, [&](const TorchFileWriter& out) {
    Writer writer(out);
    Paths weights, constants;
    for (std::size_t i = 0; i < programs.size(); ++i) {
      const std::string& name = programs[i].name;
      write_tensors(writer, programs[i], /*constants=*/false, weights);
      write_tensors(writer, programs[i], /*constants=*/true, constants);
      write_text(writer, with_name(names::MODELS_FILENAME_FORMAT, name), texts[i]);
      const std::vector<char> samples = sample_inputs(programs[i].graph);
      writer.writeRecord(with_name(names::SAMPLE_INPUTS_FILENAME_FORMAT, name), samples.data(),
                         samples.size());
    }
    write_text(writer, std::string(names::ARCHIVE_FORMAT_PATH), names::ARCHIVE_FORMAT_VALUE);
    write_text(writer, std::string(names::ARCHIVE_VERSION_PATH), names::ARCHIVE_VERSION_VALUE);
    write_text(writer, "byteorder", "little");
    writer.writeEndOfFile();
  });
}

}  // namespace
}  // namespace zoo::pt2

namespace zoo {

graph::Graph export_pt2(Model& model, const std::filesystem::path& file, bool decoding) {
  std::vector<pt2::NamedGraph> programs{{"model", graph::forward_pass(model, /*token_types=*/false)}};
  if (decoding) {
    graph::DecodingPasses passes = graph::decoding_passes(model);
    if (passes.encode) programs.push_back({"encode", std::move(*passes.encode)});
    if (passes.start) programs.push_back({"start", std::move(*passes.start)});
    programs.push_back({"step", std::move(passes.step)});
  }
  pt2::write_archive(programs, file);
  return std::move(programs[0].graph);
}

VerifyReport verify_pt2(const graph::Graph& graph, Model& model) {
  return verify_outputs(
      [&](const ModelInputs& inputs) {
        const at::Tensor& mask = inputs.attention_mask;
        std::vector<at::Tensor> given{inputs.input_ids,
                                      mask.defined() ? mask : at::ones_like(inputs.input_ids)};
        if (inputs.decoder_input_ids.defined()) given.push_back(inputs.decoder_input_ids);
        return graph::run(graph, given);
      },
      model);
}

bool is_pt2(const std::filesystem::path& file) {
  try {
    caffe2::serialize::PyTorchStreamReader reader(file.string());
    const auto [data, size] = reader.getRecord(std::string(pt2::names::ARCHIVE_FORMAT_PATH));
    return std::string_view(static_cast<const char*>(data.get()), size) == pt2::names::ARCHIVE_FORMAT_VALUE;
  } catch (const c10::Error&) {
    return false;
  }
}

}  // namespace zoo
