#include "apps/answers/number_text.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "apps/command/output.h"

namespace zoo {
namespace {

std::string formatted(bool signs, double value, int digits) {
  if (std::isnan(value)) return "-";
  const double unit = std::pow(10.0, digits);
  const double rounded = std::abs(value * unit) < 0.5 ? 0.0 : value;
  return (signs && !std::signbit(rounded) ? "+" : "") + format_text("%.*f", digits, rounded);
}

}  // namespace

std::string decimal(double value, int digits) { return formatted(/*signs=*/false, value, digits); }

std::string decimal(const at::Tensor& value, int digits) { return decimal(value.item<double>(), digits); }

std::string signed_decimal(const at::Tensor& value, int digits) {
  return formatted(/*signs=*/true, value.item<double>(), digits);
}

std::string significant(double value) { return format_text("%.6g", value); }

nlohmann::ordered_json json_numbers(const at::Tensor& values) {
  nlohmann::ordered_json numbers = nlohmann::ordered_json::array();
  for (std::int64_t i = 0; i < values.size(0); ++i) {
    if (values.dim() == 1) {
      numbers.push_back(values[i].item<double>());
    } else {
      numbers.push_back(json_numbers(values[i]));
    }
  }
  return numbers;
}

}  // namespace zoo
