#pragma once

#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "apps/command/arguments.h"

namespace zoo {

/// tzoo bench train: prints the time of an update and of its parts as JSON.
int run_bench_train(const Arguments& arguments);

/// The JSON to print. Nothing if the arguments ask for help, and for ranks other than the first.
std::optional<nlohmann::ordered_json> measure_training(const Arguments& arguments);

}  // namespace zoo
