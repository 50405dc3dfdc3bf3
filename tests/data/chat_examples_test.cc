// Forms of chats, their faults, and the words to learn where a template does not mark them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/message_of.h"
#include "data/chats/chat_reader.h"
#include "data/dataset_fixture.h"

namespace teratron::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kForm =
    "{% for m in messages %}{{ m.role }}:{{ m.content }};\n{% endfor %}{% if add_generation_prompt %}assistant:{% "
    "endif %}";

// Says the last answer otherwise than the earlier ones.
constexpr const char* kRewritingForm =
    "{% for m in messages %}{{ m.role }}:{{ m.content }}{% if loop.last and m.role == 'assistant' %}!{% endif %};{% "
    "endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}";

ChatTokenizer tokenizer_with(const std::string& form) {
  return {byte_tokenizer(), {.form = std::make_shared<ChatTemplate>(ChatTemplateFile{.text = form, .path = "form"})}};
}

// Texts of the documents, with the words to learn in brackets; bytes are tokens.
std::vector<std::string> shown(const std::vector<ChatTokens>& documents) {
  std::vector<std::string> texts;
  for (const ChatTokens& chat : documents) {
    std::string& text = texts.emplace_back();
    for (std::size_t i = 0; i < chat.ids.size(); ++i) {
      if (chat.learned[i] && (i == 0 || !chat.learned[i - 1])) text += '[';
      text += chat.ids[i] == 256 ? "<end>" : std::string(1, static_cast<char>(chat.ids[i]));
      if (chat.learned[i] && (i + 1 == chat.ids.size() || !chat.learned[i + 1])) text += ']';
    }
  }
  return texts;
}

std::vector<std::string> shown(const std::string& form, const std::string& json) {
  return shown(tokenizer_with(form).tokenize(read_chat_example(json)));
}

std::vector<std::string> shown_pair(const std::string& form, const std::string& json) {
  return shown(tokenizer_with(form).tokenize(read_preference_example(json)));
}

TEST(PreferenceExamples, AllFormsAreRead) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(shown_pair("", R"({"prompt": "2+2=", "chosen": "4", "rejected": "5"})"),
            (Texts{"2+2=[4<end>]", "2+2=[5<end>]"}));
  // The beginning of both, as TRL's extract_prompt cuts it: before the space.
  EXPECT_EQ(shown_pair("", R"({"chosen": "It is blue.", "rejected": "It is green."})"),
            (Texts{"It is[ blue.<end>]", "It is[ green.<end>]"}));
  EXPECT_EQ(shown_pair("", R"({"chosen": "a\u00e9", "rejected": "a\u00e8"})"),
            (Texts{"a[\u00e9<end>]", "a[\u00e8<end>]"}));
  EXPECT_EQ(shown_pair("", R"({"chosen": "", "rejected": "no"})"), (Texts{"[<end>]", "[no<end>]"}));
  // An answer that begins the other keeps its last character.
  EXPECT_EQ(shown_pair("", R"({"chosen": "It is", "rejected": "It is not"})"),
            (Texts{"It i[s<end>]", "It i[s not<end>]"}));
  EXPECT_EQ(shown_pair("", R"({"chosen": "a\u00e9", "rejected": "a\u00e9"})"),
            (Texts{"a[\u00e9<end>]", "a[\u00e9<end>]"}));
  EXPECT_EQ(shown_pair("", R"({"prompt": "A<|endoftext|>", "chosen": "", "rejected": "B"})"),
            (Texts{"A<end>[<end>]", "A<end>[B<end>]"}));
  const Texts talk = {"user:A;\nassistant:[B;]", "user:A;\nassistant:[C;]"};
  const std::string chosen = R"({"role": "assistant", "content": "B"})", rejected = R"({"from": "gpt", "value": "C"})",
                    asked = R"({"role": "user", "content": "A"})";
  for (const std::string& json :
       {R"({"prompt": [)" + asked + R"(], "chosen": [)" + chosen + R"(], "rejected": [)" + rejected + "]}",
        R"({"chosen": [)" + asked + "," + chosen + R"(], "rejected": [)" + asked + "," + rejected + "]}",
        R"({"prompt": "A", "chosen": [)" + asked + "," + chosen + R"(], "rejected": [)" + asked + "," + rejected + "]}",
        R"({"prompt": "A", "chosen": [)" + chosen + R"(], "rejected": [)" + rejected + "]}",
        R"({"conversations": [{"from": "human", "value": "A"}], "chosen": )" + chosen + R"(, "rejected": )" + rejected +
            "}",
        R"({"messages": [)" + asked + R"(], "chosen": "B", "rejected": "C"})",
        R"({"prompt": "A", "messages": [)" + asked + "," + chosen + R"(], "chosen": [)" + asked + "," + chosen +
            R"(], "rejected": [)" + asked + "," + rejected + "]}"}) {
    EXPECT_EQ(shown_pair(kForm, json), talk) << json;
  }
  // Earlier answers that both begin with are context; of an answer of several turns all is learned.
  EXPECT_EQ(
      shown_pair(kForm, R"({"chosen": [)" + asked + "," + chosen + "," + asked + "," + chosen + R"(], "rejected": [)" +
                            asked + "," + chosen + "," + asked + "," + rejected + "]}"),
      (Texts{"user:A;\nassistant:B;\nuser:A;\nassistant:[B;]", "user:A;\nassistant:B;\nuser:A;\nassistant:[C;]"}));
  EXPECT_EQ(shown_pair(kForm, R"({"chosen": [)" + asked + "," + chosen + "," + asked + "," + chosen +
                                  R"(], "rejected": [)" + asked + "," + rejected + "]}"),
            (Texts{"user:A;\nassistant:[B;\nuser:A;\nassistant:B;]", "user:A;\nassistant:[C;]"}));
  EXPECT_EQ(shown_pair(kForm, R"({"chosen": [)" + asked + R"(], "rejected": [)" + asked + "]}"), Texts{});
}

// No set's prompt is left aside: neither a conversation beside bare answers, nor one under another name.
TEST(PreferenceExamples, PromptsBesideBareAnswersAreReadOrRefused) {
  using Texts = std::vector<std::string>;
  const std::string asked = R"({"role": "user", "content": "A"})", chosen = R"({"role": "assistant", "content": "B"})",
                    rejected = R"({"role": "assistant", "content": "C"})",
                    bare = R"("chosen": [)" + chosen + R"(], "rejected": [)" + rejected + "]";
  const Texts talk = {"user:A;\nassistant:[B;]", "user:A;\nassistant:[C;]"};
  for (const std::string& json : {R"({"messages": [)" + asked + "], " + bare + "}",
                                  R"({"conversations": [)" + asked + R"(], "prompt": null, )" + bare + "}",
                                  R"({"messages": [)" + asked + "," + chosen + "], " + bare + "}",
                                  R"({"prompt": [)" + asked + R"(], "chosen": [)" + asked + "," + chosen +
                                      R"(], "rejected": [)" + asked + "," + rejected + "]}"}) {
    EXPECT_EQ(shown_pair(kForm, json), talk) << json;
  }
  EXPECT_EQ(shown_pair(kForm, R"({"system": "S", "question": "", "prompt": [)" + asked + "], " + bare + "}"),
            (Texts{"system:S;\nuser:A;\nassistant:[B;]", "system:S;\nuser:A;\nassistant:[C;]"}));
  const auto fault_of = [](const std::string& json) { return message_of<UserError>([&] { shown_pair(kForm, json); }); };
  EXPECT_THAT(fault_of(R"({"system": "S", "question": "A", "chosen": "B", "rejected": "C"})"),
              HasSubstr("there is \"question\"; name it \"prompt\""));
  EXPECT_THAT(fault_of(R"({"instruction": "A", )" + bare + "}"), HasSubstr("there is \"instruction\""));
  EXPECT_THAT(fault_of(R"({"system": "S", "prompt": "A", "chosen": "B", "rejected": "C"})"),
              HasSubstr("no place before a prompt that is a text"));
  EXPECT_THAT(fault_of(R"({"tools": [{}], "prompt": "A", "chosen": "B", "rejected": "C"})"), HasSubstr("\"tools\""));
  for (const char* prompt : {R"("prompt": {"role": "user", "content": "A"})", R"("messages": "A")", R"("prompt": 7)",
                             R"("conversations": {"from": "human", "value": "A"})"}) {
    EXPECT_THAT(fault_of(fmt::format("{{{}, {}}}", prompt, bare)), HasSubstr("no list of messages")) << prompt;
    EXPECT_THAT(fault_of(fmt::format(R"({{{}, "chosen": "B", "rejected": "C"}})", prompt)),
                HasSubstr("no list of messages"))
        << prompt;
  }
}

TEST(PreferenceExamples, FaultsAreReported) {
  const auto fault_of = [](const std::string& form, const std::string& json) {
    return message_of<UserError>([&] { shown_pair(form, json); });
  };
  EXPECT_THAT(fault_of(kForm, R"({"chosen": "a"})"), HasSubstr("no \"rejected\""));
  EXPECT_THAT(fault_of(kForm, R"({"chosen": "a", "rejected": 3})"), HasSubstr("\"rejected\" is no answer"));
  EXPECT_THAT(fault_of(kForm, R"({"chosen": [], "rejected": "b"})"), HasSubstr("no list of messages"));
  EXPECT_THAT(fault_of(kForm, R"(["chosen"])"), HasSubstr("no JSON object"));
  EXPECT_THAT(fault_of(kForm, "{"), HasSubstr("not valid JSON"));
  const std::string turns = R"([{"role": "user", "content": "A"}, {"role": "assistant", "content": "B"},
                                {"role": "user", "content": "C"}, {"role": "assistant", "content": "D"}])";
  EXPECT_THAT(
      fault_of(kRewritingForm, R"({"chosen": )" + turns + R"(, "rejected": [{"role": "user", "content": "X"}]})"),
      HasSubstr("end the pair at the first turn that differs"));
}

TEST(ChatExamples, AllFormsAreRead) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(
      shown(kForm, R"({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"}]})"),
      Texts{"user:Hi;\nassistant:[Yo;]\n"});
  EXPECT_EQ(shown(kForm, R"({"conversations": [{"from": "system", "value": "S"}, {"from": "human", "value": "A"},
                              {"from": "gpt", "value": "B"}, {"from": "human", "value": "C"}, {"from": "gpt", "value": "D"}]})"),
            Texts{"system:S;\nuser:A;\nassistant:[B;]\nuser:C;\nassistant:[D;]\n"});
  EXPECT_EQ(shown(kForm, R"({"prompt": [{"role": "user", "content": "A"}, {"role": "assistant", "content": "B"},
                                        {"role": "user", "content": "C"}],
                              "completion": [{"role": "assistant", "content": "D"}]})"),
            Texts{"user:A;\nassistant:B;\nuser:C;\nassistant:[D;]\n"});
  EXPECT_EQ(shown(kForm, R"({"prompt": "2+2=", "completion": "4", "id": [1]})"), Texts{"2+2=[4<end>]"});
  EXPECT_EQ(
      shown(kForm, R"({"instruction": "A", "input": "B", "output": "C", "system": "S", "history": [["D", "E"]]})"),
      Texts{"system:S;\nuser:D;\nassistant:[E;]\nuser:A\nB;\nassistant:[C;]\n"});
  EXPECT_EQ(shown(kForm, R"({"instruction": "A", "input": "", "output": "C", "system": null, "text": "A C"})"),
            Texts{"user:A;\nassistant:[C;]\n"});
  EXPECT_EQ(shown(kForm, R"({"text": "all"})"), Texts{"[all<end>]"});
  EXPECT_EQ(shown(kForm, R"({"messages": [{"role": "user", "content": "Hi"}]})"), Texts{});
  EXPECT_EQ(shown(kForm, R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "text",
                              "text": "y"}], "tool_calls": []}, {"role": "assistant", "content": "Yo", "refusal": null}]})"),
            Texts{"user:x\ny;\nassistant:[Yo;]\n"});
}

TEST(ChatExamples, TheSystemsTextMayStandBesideTheConversation) {
  using Texts = std::vector<std::string>;
  const std::string talk = R"([{"from": "human", "value": "A"}, {"from": "gpt", "value": "B"}])",
                    led = R"([{"role": "system", "content": "S"}, {"from": "human", "value": "A"},
                             {"from": "gpt", "value": "B"}])";
  const Texts whole = {"system:S;\nuser:A;\nassistant:[B;]\n"};
  EXPECT_EQ(shown(kForm, R"({"system": "S", "tools": "[]", "conversations": )" + talk + "}"), whole);
  EXPECT_EQ(shown(kForm, R"({"system_prompt": "S", "conversations": null, "messages": )" + talk + "}"), whole);
  EXPECT_EQ(shown(kForm, R"({"system": "S", "messages": )" + led + "}"), whole);
  EXPECT_EQ(shown(kForm, R"({"system": "S", "prompt": [{"role": "assistant", "content": "A"}],
                             "completion": [{"role": "assistant", "content": "B"}]})"),
            Texts{"system:S;\nassistant:A;\nassistant:[B;]\n"});
}

TEST(ChatExamples, AnswersOfWeightZeroAreOnlyRead) {
  const std::string talk = R"({"messages": [{"role": "user", "content": "A"},
      {"role": "assistant", "content": "B", "weight": 0}, {"role": "user", "content": "C"},
      {"role": "assistant", "content": "D", "weight": 1}]})";
  EXPECT_EQ(shown(kForm, talk), std::vector<std::string>{"user:A;\nassistant:B;\nuser:C;\nassistant:[D;]\n"});
  const std::string blocks = "{% for m in messages %}{% generation %}{% endgeneration %}{% endfor %}";
  EXPECT_EQ(
      shown("{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration "
            "%}{% else %}{{ m.content }}{% endif %}{% endfor %}",
            talk),
      std::vector<std::string>{"ABC[D]"});
  EXPECT_THAT(message_of<UserError>([&] { shown(blocks, talk); }),
              HasSubstr("4 {% generation %} blocks for 2 answers"));
}

// As axolotl's data sets have it.
TEST(ChatExamples, AnswersNotToTrainOnAreOnlyRead) {
  EXPECT_EQ(shown(kForm, R"({"messages": [{"role": "user", "content": "A", "train": false},
      {"role": "assistant", "content": "B", "train": false}, {"role": "user", "content": "C", "train": null},
      {"role": "assistant", "content": "D", "train": true, "weight": 1}]})"),
            std::vector<std::string>{"user:A;\nassistant:B;\nuser:C;\nassistant:[D;]\n"});
}

TEST(ChatExamples, AnswersThatAreWrittenOtherwiseLaterAreDocumentsOfTheirOwn) {
  EXPECT_EQ(
      shown(kRewritingForm, R"({"messages": [{"role": "user", "content": "A"}, {"role": "assistant", "content": "B"},
                                       {"role": "user", "content": "C"}, {"role": "assistant", "content": "D"}]})"),
      (std::vector<std::string>{"user:A;assistant:[B!;]", "user:A;assistant:B;user:C;assistant:[D!;]"}));
}

TEST(ChatExamples, BlocksOfTheTemplateSayWhatIsLearned) {
  const std::string form =
      "{% for m in messages %}{{ m.role }}:{%- if m.role == 'assistant' %} {% generation %}{{ m.content }}{% "
      "endgeneration %}{% else %}{{ m.content }}{% endif %};{% endfor %}";
  EXPECT_EQ(shown(form, R"({"messages": [{"role": "user", "content": "A"}, {"role": "assistant", "content": "B"}]})"),
            std::vector<std::string>{"user:A;assistant: [B];"});
  EXPECT_EQ(shown(form, R"({"prompt": [{"role": "assistant", "content": "A"}],
                            "completion": [{"role": "assistant", "content": "B"}]})"),
            std::vector<std::string>{"assistant: A;assistant: [B];"});
  EXPECT_THAT(message_of<UserError>(
                  [&] { shown(form, "{\"messages\": [{\"role\": \"assistant\", \"content\": \"\\ufdd0\"}]}"); }),
              HasSubstr("U+FDD0"));
}

TEST(ChatExamples, AllConversationsHaveOneDateOfAnyLength) {
  const std::string wide = "%Y" + std::string(300, '-');
  const ChatTokenizer tokenizer(byte_tokenizer(),
                                {.form = std::make_shared<ChatTemplate>(ChatTemplateFile{
                                     .text = "{{ strftime_now('" + wide +
                                             "') }}{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}"
                                             "{% if add_generation_prompt %}assistant:{% endif %}",
                                     .path = "form"})},
                                ChatTemplate::Time() + std::chrono::hours(24 * 200));
  const ChatExample example =
      read_chat_example(R"({"messages": [{"role": "user", "content": "A"}, {"role": "assistant", "content": "B"}]})");
  EXPECT_EQ(shown(tokenizer.tokenize(example)).front(), "1970" + std::string(300, '-') + "user:A;assistant:[B;]");
}

TEST(ChatExamples, TextThatAFilterChangesAroundABlockIsRefused) {
  const std::string talk = R"({"messages": [{"role": "assistant", "content": " A "}]})";
  const auto form = [](const std::string& text) { return "{% filter trim %}" + text + "{% endfilter %}"; };
  const std::string block = "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}";
  EXPECT_EQ(shown(form(block + ".{% endfor %}"), R"({"messages": [{"role": "assistant", "content": "A "}]})"),
            std::vector<std::string>{"[A ]."});
  EXPECT_THAT(message_of<UserError>([&] { shown(form(block + "{% endfor %}"), talk); }),
              HasSubstr("changes what its {% generation %} blocks write"));
}

TEST(ChatExamples, EveryFaultIsReportedWithItsLine) {
  const TemporaryFolder folder;
  const auto fault_of = [&](const std::string& line) {
    write_file_atomically(folder / "chats.jsonl", "{\"text\": \"fine\"}\n" + line + "\n");
    return message_of<UserError>([&] {
      const ChatTokenizer tokenizer = tokenizer_with(
          "{% for m in messages %}{% if m.content == 'no' %}{{ raise_exception('not that') }}{% endif %}{{ m.content }}"
          "{% endfor %}{% if add_generation_prompt %}?{% endif %}");
      const std::vector<std::filesystem::path> files = {folder / "chats.jsonl"};
      ChatReader reader(tokenizer, files);
      for (std::vector<ChatTokens> documents; reader.next(documents);) {
      }
    });
  };
  const std::string user = R"({"role": "user", "content": "A"})";
  for (const auto& [line, words] : std::vector<std::pair<std::string, std::string>>{
           {"{\"messages\": [}", "not valid JSON"},
           {"[1]", "no JSON object"},
           {R"({"messages": )" + std::string(200'000, '[') + std::string(200'000, ']') + "}", "more than 1000 deep"},
           {"{\"prompt\": \"A\"}", "neither \"messages\""},
           {R"({"instruction": "A", "output": 3})", "\"output\" is no text"},
           {R"({"instruction": "A", "output": "B", "history": ["C"]})", "list of pairs"},
           {"{\"messages\": []}", "no list of messages"},
           {"{\"messages\": [3]}", "messages[0] is no object"},
           {"{\"messages\": [" + user + R"(, {"role": "asistant", "content": "B"}]})",
            "messages[1] is said by 'asistant'"},
           {R"({"messages": [{"content": "B"}]})", "messages[0] is said by nobody"},
           {R"({"messages": [{"role": "user", "content": 3}]})", "messages[0] has no text"},
           {R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})", "only parts of type \"text\""},
           {R"({"messages": [{"role": "assistant", "content": "", "tool_calls": [{}]}]})", "tool_calls[0]"},
           {R"({"messages": [{"role": "assistant", "content": "B", "weight": 0.5}]})",
            "messages[0] has the weight 0.5"},
           {R"({"messages": [{"role": "assistant", "content": "B", "train": 0}]})",
            "messages[0] has \"train\": 0; it is"},
           {R"({"messages": [{"role": "assistant", "content": "B", "train": "no"}]})", "has \"train\": \"no\""},
           {R"({"messages": [{"role": "assistant", "content": "B", "train": [{}]}]})", "has \"train\": [{}]"},
           {R"({"messages": [{"role": "assistant", "content": "B", "train": true, "weight": 0}]})",
            "\"train\": true and another weight"},
           {R"({"system": "S", "messages": [{"role": "system", "content": "T"}]})", "the system has two texts"},
           {R"({"system": "S", "prompt": "A", "completion": "B"})", "no place before a prompt that is a text"},
           {R"({"tools": [1], "messages": [)" + user + "]}", "\"tools\" is no list"},
           {R"({"messages": [{"role": "user", "content": "no"}, {"role": "assistant", "content": "B"}]})", "not that"},
           {"{\"messages\": [" + user + R"(, {"role": "assistant", "content": "B"}]})", "{% generation %} blocks"}}) {
    EXPECT_THAT(fault_of(line), HasSubstr("chats.jsonl:2: ")) << line;
    EXPECT_THAT(fault_of(line), HasSubstr(words)) << line;
  }
}

}  // namespace
}  // namespace teratron::testing
