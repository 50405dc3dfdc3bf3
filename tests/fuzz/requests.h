// Limits of the requests that a fuzzer makes.
#pragma once

#include "fuzz.h"
#include "serve/api_error.h"
#include "serve/request_fields.h"
#include "serve/text/chat_request.h"
#include "tokenizers.h"

namespace teratron::fuzz {

inline const CompletionLimits kLimits = {.positions = 64, .texts = 8, .ends = {}};

}  // namespace teratron::fuzz
