#include "apps/command/version.h"

namespace zoo {

const char* version() { return ZOO_VERSION; }

}  // namespace zoo
