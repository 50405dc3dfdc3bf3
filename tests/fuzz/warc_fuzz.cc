// WARC files, plain or compressed.
#include "corpus/extract/http_response.h"
#include "corpus/extract/warc_reader.h"
#include "fuzz.h"

void teratron::fuzz::parse(std::string_view input) {
  WarcReader reader(put("a.warc", input));
  if (!reader.is_warc()) return;
  WarcRecord record;
  while (reader.next(record)) {
    const std::string content = reader.read(1 << 16);
    if (const auto head = parse_http_head(content)) {
      decode_http_body(*head, std::string_view(content).substr(head->bytes), 1 << 20);
    }
  }
}
