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

/// Describes a module of a TorchScript file: its contents and the source of its methods. Parts with the same
/// class_name become objects of one class, so that twelve layers share one source; only their tensors may
/// differ.
///
/// `source` may use Python's keywords and `torch`; `torch.X` is the operator aten::X; dtypes are numbers
/// (kFloatCode …). A child is called as `self.name.forward(x)`.
struct ScriptPart {
  std::string class_name;
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  std::vector<std::pair<std::string, at::Tensor>> buffers;
  std::vector<std::pair<std::string, ScriptValue>> attributes;
  std::vector<ScriptChild> children;
  std::string source;  // empty: only holds other modules
};

struct ScriptChild {
  std::string name;
  ScriptPart part;
};

/// Replaces each "$name" in `text`. Throws c10::Error for a "$" without a known name.
std::string fill(std::string_view text, const std::vector<std::pair<std::string_view, std::string>>& values);

// Number of a dtype in a program: at::kFloat, at::kLong, at::kBool.
constexpr const char* kFloatCode = "6";
constexpr const char* kLongCode = "4";
constexpr const char* kBoolCode = "11";

/// The shortest literal that reads back as the same double, always with a point or an exponent.
std::string literal(double value);

}  // namespace zoo::script
