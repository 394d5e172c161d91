#pragma once

#include <string>

#include "models/formats/config_reader.h"

namespace zoo {

/// Keys that change the numbers of some architecture. One that the family has asked of the reader is known;
/// another must be absent, null or the value that changes nothing. Throws Error naming it and `family`.
void refuse_foreign_keys(const ConfigReader& reader, const std::string& family);

}  // namespace zoo
