// The body of /v1/completions.
#include "requests.h"

void teratron::fuzz::parse(std::string_view input) {
  try {
    const CompletionRequest request = read_completion_request(parse_request(input), small_tokenizer(), kLimits);
    require(!request.jobs(kLimits).empty(), "a request that is taken asks for a text");
  } catch (const ApiError& error) {
    require(error.status() == 400 && !error.answer().body.empty(), "a bad request is answered by status 400");
  }
}
