#pragma once

#include "models/family.h"

namespace zoo::albert {

Family family();

}  // namespace zoo::albert
