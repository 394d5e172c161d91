#pragma once

#include "models/family.h"

namespace zoo::llama {

Family family();

}  // namespace zoo::llama
