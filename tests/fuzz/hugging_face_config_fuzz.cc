// config.json of a Hugging Face model.
#include "checkpoint/hugging_face/hugging_face_config.h"
#include "fuzz.h"

void teratron::fuzz::parse(std::string_view input) { read_hugging_face_config(put("config.json", input)); }
