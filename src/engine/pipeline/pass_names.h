// Names of passes, for messages and for the place of a rank (comm/place.h).
#pragma once

#include "pipeline/schedule.h"

namespace teratron::pipeline {

const char* name_of(Pass pass);  // a literal, "forward"

}  // namespace teratron::pipeline
