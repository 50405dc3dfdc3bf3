// PREFIX.teratron.json.
#include "data/indexed/corpus_sidecar.h"
#include "fuzz.h"

void teratron::fuzz::parse(std::string_view input) {
  put("a.teratron.json", input);
  const auto sidecar = read_sidecar(folder() / "a");
  require(sidecar.has_value(), "a file that is there is read");
  put("a.teratron.json", text_of(*sidecar));
  require(text_of(*read_sidecar(folder() / "a")) == text_of(*sidecar), "a sidecar reads back");
}
