#pragma once

#include "models/family.h"

namespace zoo::roberta {

Family family();

}  // namespace zoo::roberta
