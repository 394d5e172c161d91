#pragma once

/// @file
/// Files of ONNX: their protocol buffers (github.com/onnx/onnx, onnx.proto), opset 20.

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>

namespace zoo::onnx {

using Attribute =
    std::pair<std::string, std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>>>;

/// An operator of the default domain.
struct Node {
  std::string op;
  std::vector<std::string> inputs, outputs;  // "": an optional input that is left out
  std::vector<Attribute> attributes;
};

struct Initializer {
  std::string name;
  at::Tensor tensor;
  bool transposed = false;  // a matrix that is written with its columns as rows
};

/// An input or output of a file.
struct Port {
  std::string name;
  at::ScalarType dtype = at::kLong;
  std::vector<std::string> sizes;  // digits, or the name of a free size
};

struct File {
  std::string name;
  std::vector<Initializer> initializers;
  std::vector<Node> nodes;  // in the order of computation
  std::vector<Port> inputs, outputs;
};

/// Number of a type in ONNX. Throws Error for one that it lacks.
int dtype_number(at::ScalarType dtype);

/// Writes the files into an existing directory. Weights lie in a file, or once in "model.onnx_data" beside
/// them if there are several files or a buffer could not hold them (2 GiB). Throws Error naming a file that
/// cannot be written.
void write(const std::vector<File>& files, const std::filesystem::path& directory);

}  // namespace zoo::onnx
