#pragma once

#include "models/family.h"

namespace zoo::t5 {

Family family();

}  // namespace zoo::t5
