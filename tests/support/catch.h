// Catch2, version 2 or 3, with the names of version 2.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)

#include <catch2/catch_approx.hpp>
#include <catch2/catch_session.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/catch_tostring.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

namespace Catch {
using Matchers::EndsWith;
using Matchers::StartsWith;

inline auto Contains(const std::string& text) { return Matchers::ContainsSubstring(text); }
}  // namespace Catch

using Catch::Approx;

// Generated values are printed, and LibTorch has an operator<< for every std::pair: generate std::tuple of
// enums.

#else

#include <catch2/catch.hpp>

#endif
