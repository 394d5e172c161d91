#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>

namespace zoo::script {

using ScriptValue = std::variant<std::int64_t, std::string, std::vector<std::int64_t>>;

struct ScriptChild;

/// A module of a TorchScript file, described: what it holds and the text of its methods. Parts with the same
/// class_name become objects of one class, so that twelve layers share one text; they must agree in
/// everything but the tensors.
///
/// In `source` only `torch` has a meaning besides Python's own words, and `torch.X` is the operator aten::X;
/// dtypes are numbers (kFloatCode …). A child is called as `self.name.forward(x)`.
struct ScriptPart {
  std::string class_name;
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  std::vector<std::pair<std::string, at::Tensor>> buffers;
  std::vector<std::pair<std::string, ScriptValue>> attributes;
  std::vector<ScriptChild> children;
  std::string source;  // empty: a module that only holds others
};

struct ScriptChild {
  std::string name;
  ScriptPart part;
};

/// `text` with each "$name" replaced. Throws c10::Error for a "$" that no name follows, so that none is
/// forgotten.
std::string fill(std::string_view text, const std::vector<std::pair<std::string_view, std::string>>& values);

// How a program names a type of numbers: at::kFloat, at::kLong, at::kBool.
constexpr const char* kFloatCode = "6";
constexpr const char* kLongCode = "4";
constexpr const char* kBoolCode = "11";

/// The shortest literal that reads back as the same double, always with a point or an exponent.
std::string literal(double value);

}  // namespace zoo::script
