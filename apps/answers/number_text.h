#pragma once

#include <string>

#include <ATen/core/Tensor.h>
#include <nlohmann/json_fwd.hpp>

namespace zoo {

/// The value with this many digits after the point; "-" for NaN. A negative zero has no sign.
std::string decimal(double value, int digits);
std::string decimal(const at::Tensor& value, int digits);

/// The same with a sign.
std::string signed_decimal(const at::Tensor& value, int digits);

/// The value with six significant digits.
std::string significant(double value);

/// Numbers of a tensor [N] or rows of one [N, M] as JSON.
nlohmann::ordered_json json_numbers(const at::Tensor& values);

}  // namespace zoo
