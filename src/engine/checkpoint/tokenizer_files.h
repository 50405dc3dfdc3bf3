// Files of a tokenizer, as bytes: checkpoints and exported models hold a copy.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace teratron {

using FileContents = std::map<std::string, std::string>;  // name -> bytes

// Reads those of vocab.json, encoder.json, merges.txt, vocab.bpe, vocab.txt, tokenizer.json, tokenizer_config.json,
// special_tokens_map.json and added_tokens.json that lie in `folder`; none if there are none. Beside one of them also
// those that say how to write chats and where answers end: chat_template.jinja, more templates, and
// generation_config.json. Without the latter it is made of what Hugging Face's config.json says about ends. A
// checkpoint has no folders: its chat_template.NAME.jinja is additional_chat_templates/NAME.jinja of Hugging Face.
FileContents find_tokenizer_files(const std::filesystem::path& folder);

// Whether a file in the folder of a checkpoint or Hugging Face model names the tokens. SentencePiece's tokenizer.model
// is not read: a folder that has it and no tokenizer.json has no tokenizer here.
bool holds_tokenizer(const std::filesystem::path& folder);

inline constexpr std::string_view kMoreTemplates = "additional_chat_templates/";
// Path in a folder of Hugging Face of a file that is called so in a checkpoint.
std::string place_in_hugging_face(const std::string& name);

// Reads the files of a folder; or tokenizer.json if `folder_or_file` is that; or all but tokenizer.json if it is
// another of the files. UserError where that is no tokenizer.
FileContents read_tokenizer_files(const std::filesystem::path& folder_or_file);

// Whether the files make the same tokens of every text: all but those on chats are equal.
bool are_same_tokenizer(FileContents a, FileContents b);

// Id of a special token, as "<|endoftext|>", in the files, if they have it. UserError: a vocabulary that is not JSON.
std::optional<std::int64_t> special_token_id(const FileContents& files, std::string_view token);

}  // namespace teratron
