#pragma once

#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "apps/command/arguments.h"

namespace zoo {

/// tzoo bench train: prints the time of an update and of its parts as JSON.
int run_bench_train(const Arguments& arguments);

/// The JSON of bench train. Nothing if the arguments ask for help, and for ranks other than the first.
std::optional<nlohmann::ordered_json> measure_training(const Arguments& arguments);

/// tzoo bench compare: what this machine's memory and products allow, and what decoding, reading a prompt and
/// training reach of it.
int run_bench_compare(const Arguments& arguments);

}  // namespace zoo
