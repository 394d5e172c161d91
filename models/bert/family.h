#pragma once

#include "models/family.h"

namespace zoo::bert {

Family family();

}  // namespace zoo::bert
