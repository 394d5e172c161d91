#include "models/onnx/onnx_file.h"

#include <map>
#include <string_view>

#include <torch/version.h>

#include "data/base/atomic_file.h"
#include "data/base/error.h"
#include "data/base/protobuf_message.h"

namespace zoo::onnx {
namespace {

// Versions of the files' structure and of the operators' meaning.
constexpr std::int64_t kIrVersion = 9, kOpset = 20;
// Protocol buffers end at 2 GiB. What is smaller than a page stays in the file: others begin at one, so that
// they can be mapped.
constexpr std::size_t kMostInFile = (std::size_t{2} << 30) - (std::size_t{64} << 20), kPage = 4096;

using Message = ProtobufMessage;

Message message_of(const Attribute& attribute) {
  constexpr int kName = 1, kFloat = 2, kInt = 3, kString = 4, kInts = 8, kType = 20;
  Message message;
  message.text(kName, attribute.first);
  if (const auto* number = std::get_if<std::int64_t>(&attribute.second)) message.number(kInt, *number);
  if (const auto* real = std::get_if<float>(&attribute.second)) message.real(kFloat, *real);
  if (const auto* text = std::get_if<std::string>(&attribute.second)) message.text(kString, *text);
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&attribute.second)) {
    for (const std::int64_t number : *list) message.number(kInts, number);
  }
  constexpr std::int64_t kTypes[] = {2, 1, 3, 7};  // by the order of the variant
  message.number(kType, kTypes[attribute.second.index()]);
  return message;
}

Message message_of(const Node& node) {
  constexpr int kInput = 1, kOutput = 2, kOp = 4, kAttribute = 5;
  Message message;
  for (const std::string& name : node.inputs) message.text(kInput, name);
  for (const std::string& name : node.outputs) message.text(kOutput, name);
  message.text(kOp, node.op);
  for (const Attribute& attribute : node.attributes) message.message(kAttribute, message_of(attribute));
  return message;
}

Message message_of(const Port& port) {
  Message shape, tensor, type, message;
  for (const std::string& size : port.sizes) {
    Message dimension;
    const bool is_number = size.find_first_not_of("0123456789") == std::string::npos;
    is_number ? dimension.number(1, std::stoll(size)) : dimension.text(2, size);
    shape.message(1, dimension);
  }
  tensor.number(1, dtype_number(port.dtype));
  tensor.message(2, shape);
  type.message(1, tensor);
  message.text(1, port.name);
  message.message(2, type);
  return message;
}

at::Tensor stored(const Initializer& initializer) {
  const at::Tensor tensor = initializer.tensor.detach();
  return (initializer.transposed ? tensor.t() : tensor).contiguous().cpu();
}

std::string_view bytes_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

// Weights beside the files, each once.
class SharedData {
 public:
  static constexpr const char* kName = "model.onnx_data";

  explicit SharedData(const std::filesystem::path& directory) : file_(directory / kName) {}

  std::size_t place(const Initializer& initializer) {
    const auto [entry, added] =
        places_.try_emplace({initializer.tensor.unsafeGetTensorImpl(), initializer.transposed}, size_);
    if (!added) return entry->second;
    const at::Tensor tensor = stored(initializer);
    file_.write(bytes_of(tensor));
    const std::size_t end = size_ + tensor.nbytes();
    size_ = (end + kPage - 1) / kPage * kPage;
    file_.write(std::string(size_ - end, '\0'));
    return entry->second;
  }

  void commit() { file_.commit(); }

 private:
  AtomicFile file_;
  std::map<std::pair<const c10::TensorImpl*, bool>, std::size_t> places_;
  std::size_t size_ = 0;
};

// A TensorProto, without the bytes of one that lies in the file.
Message message_of(const Initializer& initializer, SharedData* shared) {
  constexpr int kDims = 1, kType = 2, kName = 8, kRaw = 9, kExternal = 13, kLocation = 14;
  Message message;
  std::vector<std::int64_t> sizes = initializer.tensor.sizes().vec();
  if (initializer.transposed) std::swap(sizes[0], sizes[1]);
  for (const std::int64_t size : sizes) message.number(kDims, size);
  message.number(kType, dtype_number(initializer.tensor.scalar_type()));
  message.text(kName, initializer.name);
  if (shared == nullptr) {
    message.begin(kRaw, initializer.tensor.nbytes());
    return message;
  }
  const std::pair<const char*, std::string> entries[] = {
      {"location", SharedData::kName},
      {"offset", std::to_string(shared->place(initializer))},
      {"length", std::to_string(initializer.tensor.nbytes())}};
  for (const auto& [key, value] : entries) {
    Message entry;
    entry.text(1, key);
    entry.text(2, value);
    message.message(kExternal, entry);
  }
  message.number(kLocation, 1);
  return message;
}

void write(const File& file, const std::filesystem::path& directory, SharedData* shared) {
  constexpr int kNode = 1, kGraphName = 2, kInitializer = 5, kInput = 11, kOutput = 12;
  Message graph;
  for (const Node& node : file.nodes) graph.message(kNode, message_of(node));
  graph.text(kGraphName, "model");
  for (const Port& port : file.inputs) graph.message(kInput, message_of(port));
  for (const Port& port : file.outputs) graph.message(kOutput, message_of(port));
  std::vector<std::string> heads;  // of the initializers
  std::size_t size = graph.bytes().size();
  for (const Initializer& initializer : file.initializers) {
    const bool apart = shared != nullptr && initializer.tensor.nbytes() >= kPage;
    const Message tensor = message_of(initializer, apart ? shared : nullptr);
    const std::size_t inside = apart ? 0 : initializer.tensor.nbytes();
    Message head;
    head.begin(kInitializer, tensor.bytes().size() + inside);
    heads.push_back(head.bytes() + tensor.bytes());
    size += heads.back().size() + inside;
  }

  constexpr int kIr = 1, kProducer = 2, kProducerVersion = 3, kGraph = 7, kOpsets = 8;
  Message opset, model;
  opset.text(1, "");
  opset.number(2, kOpset);
  model.number(kIr, kIrVersion);
  model.text(kProducer, "tzoo");
  model.text(kProducerVersion, "LibTorch " TORCH_VERSION);
  model.message(kOpsets, opset);
  model.begin(kGraph, size);

  AtomicFile out(directory / file.name);
  out.write(model.bytes());
  out.write(graph.bytes());
  for (std::size_t i = 0; i < heads.size(); ++i) {
    out.write(heads[i]);
    const Initializer& initializer = file.initializers[i];
    if (shared == nullptr || initializer.tensor.nbytes() < kPage) out.write(bytes_of(stored(initializer)));
  }
  out.commit();
}

}  // namespace

int dtype_number(at::ScalarType dtype) {
  static const std::map<at::ScalarType, int> numbers{
      {at::kFloat, 1}, {at::kByte, 2}, {at::kChar, 3},  {at::kShort, 5},   {at::kInt, 6},
      {at::kLong, 7},  {at::kBool, 9}, {at::kHalf, 10}, {at::kDouble, 11}, {at::kBFloat16, 16}};
  const auto found = numbers.find(dtype);
  if (found == numbers.end()) throw Error("tensors of ", c10::toString(dtype), " cannot be written as ONNX");
  return found->second;
}

void write(const std::vector<File>& files, const std::filesystem::path& directory) {
  std::size_t bytes = 0;
  for (const Initializer& initializer : files[0].initializers) bytes += initializer.tensor.nbytes();
  if (files.size() == 1 && bytes < kMostInFile) return write(files[0], directory, nullptr);
  SharedData shared(directory);
  for (const File& file : files) write(file, directory, &shared);
  shared.commit();
}

}  // namespace zoo::onnx
