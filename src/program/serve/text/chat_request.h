// Request of /v1/chat/completions, read and checked.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "data/chats/chat_rules.h"
#include "serve/text/completion_request.h"

namespace teratron {

// One prompt: the conversation's tokens, special ones where the text has them, with the beginning of the answer. Its
// max_tokens is set. `body`: the request's text. Tools and their calls are written with its order of keys. ApiError of
// status 400: as read_completion_request, the template refuses, or there is none.
CompletionRequest read_chat_request(const nlohmann::json& request, std::string_view body, const Tokenizer& tokenizer,
                                    const ChatRules& rules, const CompletionLimits& limits);

}  // namespace teratron
