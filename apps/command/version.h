#pragma once

namespace zoo {

/// The project's version, "0.1.0".
const char* version();

}  // namespace zoo
