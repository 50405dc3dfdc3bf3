#include "serve/vectors/vector_model.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <exception>

#include "base/base64.h"
#include "base/error.h"
#include "serve/api_error.h"
#include "serve/request_fields.h"

namespace teratron {
namespace {

constexpr std::size_t kMostTexts = 2048;  // of a request, as OpenAI's
constexpr const char* kInput = "input";

nlohmann::ordered_json vector_of(const std::vector<float>& values, bool as_base64) {
  if (!as_base64) return values;
  static_assert(std::endian::native == std::endian::little, "clients read little-endian float32");
  std::string bytes(values.size() * sizeof(float), '\0');
  std::ranges::copy(std::as_bytes(std::span(values)), std::as_writable_bytes(std::span(bytes)).begin());
  return base64_of(bytes);
}

// Sends the first rank's texts to the others. False: it has none. Every rank calls it.
bool share_texts(Communicator& group, bool are_there, TokenizedTexts& texts) {
  if (group.size() == 1) return are_there;
  std::string bytes;
  if (are_there) nlohmann::json::to_cbor(texts.ids, bytes);
  bytes = group.all_gather_host(bytes).front();
  if (bytes.empty()) return false;
  if (!are_there) nlohmann::json::from_cbor(bytes).get_to(texts.ids);
  return true;
}

}  // namespace

VectorModel::VectorModel(std::string name, Encoder& encoder, Tokenizer tokenizer, VectorSettings settings)
    : name_(std::move(name)),
      encoder_(encoder),
      ranks_(*encoder.mesh().model),
      tokenizer_(std::move(tokenizer)),
      settings_(std::move(settings)) {
  tokenize_texts(tokenizer_, {}, settings_.most_tokens);  // finds what is missing before any request
}

HttpAnswer VectorModel::completions(const nlohmann::json&, const HttpRequest&) {
  throw ApiError(
      400, fmt::format("the model '{}' is a BERT and continues no texts; it makes vectors: /v1/embeddings", name_),
      "model", "model_not_supported");
}

// Ids are those of whole texts, [CLS] and [SEP] among them where the caller wants them.
TokenizedTexts VectorModel::read_ids(const nlohmann::json& lists) const {
  TokenizedTexts texts;
  const std::int64_t known = std::min(tokenizer_.vocab_size(), encoder_.config().vocab_size);
  for (const nlohmann::json& list : lists) {
    const auto tokens = std::ssize(texts.ids.emplace_back(token_ids(list, known, kInput)));
    texts.longest = std::max(texts.longest, tokens);
    texts.tokens += tokens;
    texts.cut += tokens > settings_.most_tokens ? 1 : 0;
  }
  return texts;
}

TokenizedTexts VectorModel::read(const nlohmann::json& input) const {
  const bool is_one = input.is_string() || (input.is_array() && !input.empty() && input[0].is_number());
  const nlohmann::json list = is_one ? nlohmann::json::array({input}) : input;
  const auto are_all = [&](auto is_kind) {
    return list.is_array() && !list.empty() && std::ranges::all_of(list, is_kind);
  };
  const bool are_texts = are_all([](const nlohmann::json& one) { return one.is_string(); });
  if (!are_texts && !are_all([](const nlohmann::json& one) { return one.is_array(); })) {
    refuse_field(kInput, "input must be a string, a list of strings, a list of token ids, or a list of such lists");
  }
  if (list.size() > kMostTexts) refuse_field(kInput, "input has {} texts; {} are the most", list.size(), kMostTexts);
  TokenizedTexts tokenized;
  if (are_texts) {
    const auto texts = list.get<std::vector<std::string>>();
    tokenized = tokenize_texts(tokenizer_, std::vector<std::string_view>(texts.begin(), texts.end()),
                               settings_.most_tokens, settings_.prompt);
  } else {
    tokenized = read_ids(list);
  }
  if (tokenized.cut > 0) {
    throw ApiError(
        400,
        fmt::format("{} of the texts {} more than {} tokens, with [CLS] and [SEP]; shorten {}", tokenized.cut,
                    tokenized.cut == 1 ? "has" : "have", settings_.most_tokens, tokenized.cut == 1 ? "it" : "them"),
        kInput, "context_length_exceeded");
  }
  return tokenized;
}

HttpAnswer VectorModel::embeddings(const nlohmann::json& json, const HttpRequest& request) {
  RequestFields fields(json);
  fields.ignore_account();
  const std::string format = fields.text("encoding_format", "float");
  if (format != "float" && format != "base64")
    refuse_field("encoding_format", "encoding_format must be float or base64");
  const std::int64_t hidden = encoder_.config().hidden_size;
  const nlohmann::json* const dimensions = fields.find("dimensions");
  if (dimensions != nullptr && *dimensions != hidden) {
    refuse_field("dimensions", "dimensions must be {}, the model's, or left out", hidden);
  }
  const nlohmann::json* const input = fields.find(kInput);
  fields.refuse_unknown();
  if (input == nullptr) refuse_field(kInput, "input is missing: texts or token ids");
  Job job;
  job.texts = read(*input);
  wait_for(job, request.is_open);
  nlohmann::ordered_json data = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < job.vectors.size(); ++i) {
    data.push_back(
        {{"object", "embedding"}, {"index", i}, {"embedding", vector_of(job.vectors[i], format == "base64")}});
  }
  const nlohmann::ordered_json body = {
      {"object", "list"},
      {"data", std::move(data)},
      {"model", name_},
      {"usage", {{"prompt_tokens", job.texts.tokens}, {"total_tokens", job.texts.tokens}}}};
  return {.body = json_text(body)};
}

void VectorModel::wait_for(Job& job, const std::function<bool()>& is_open) {
  std::unique_lock lock(mutex_);
  if (is_stopped_) throw ApiError(503, "the server ends");
  if (in_flight_ >= static_cast<std::int64_t>(settings_.most_requests)) {
    ++refused_;
    throw ApiError(429, fmt::format("{} requests wait, the most that this server takes; try again soon", in_flight_),
                   "", "rate_limit_exceeded");
  }
  ++in_flight_;
  jobs_.push_back(&job);
  called_.notify_one();
  while (!done_.wait_for(lock, std::chrono::duration<double>(kLookSeconds), [&] { return job.is_done; })) {
    lock.unlock();
    const bool has_gone = !is_open();
    lock.lock();
    // A job under way is computed to its end, on every rank.
    if (!has_gone || std::erase(jobs_, &job) == 0) continue;
    --in_flight_;
    ++cancelled_;
    throw client_gone();
  }
  --in_flight_;
  ++finished_;
  tokens_ += job.texts.tokens;
  if (!job.failure.empty()) throw ApiError(is_stopped_ ? 503 : 500, job.failure);
}

void VectorModel::compute(Job& job) {
  try {
    job.vectors.resize(job.texts.ids.size());
    make_text_vectors(encoder_, job.texts, settings_.vectors, [&](std::size_t number, std::span<const float> vector) {
      job.vectors[number].assign(vector.begin(), vector.end());
    });
  } catch (const UserError& error) {  // of a text; every rank finds it
    job.failure = error.what();
  }
}

VectorModel::Job* VectorModel::next_job() {
  std::unique_lock lock(mutex_);
  called_.wait(lock, [&] { return is_stopped_ || !jobs_.empty(); });
  if (is_stopped_) return nullptr;
  Job* const job = jobs_.front();
  jobs_.pop_front();
  return job;
}

void VectorModel::end(Job& job) {
  const std::lock_guard lock(mutex_);
  job.is_done = true;
  done_.notify_all();
}

void VectorModel::serve() {
  while (true) {
    Job* const asked = ranks_.rank() == 0 ? next_job() : nullptr;
    Job received;  // from the first rank
    Job& job = asked == nullptr ? received : *asked;
    try {
      if (!share_texts(ranks_, asked != nullptr, job.texts)) return;
      compute(job);
    } catch (const std::exception& error) {
      job.failure = error.what();
      stop();  // before the client hears of it
      end(job);
      throw;
    }
    end(job);
  }
}

void VectorModel::run() {
  std::exception_ptr broken;
  try {
    serve();
  } catch (...) {
    broken = std::current_exception();
  }
  stop();
  {
    const std::lock_guard lock(mutex_);
    for (Job* const job : jobs_) {
      job->failure = "the server ends";
      job->is_done = true;
    }
    jobs_.clear();
    done_.notify_all();
  }
  if (broken) std::rethrow_exception(broken);
}

void VectorModel::stop() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  called_.notify_one();
}

std::vector<Metric> VectorModel::metrics() const {
  const std::lock_guard lock(mutex_);
  return {{"teratron_requests_in_flight", "requests in progress or waiting", false, in_flight_},
          {"teratron_requests_finished_total", "requests answered", true, finished_},
          {"teratron_requests_cancelled_total", "requests whose client went away before their turn", true, cancelled_},
          {"teratron_requests_refused_total", "requests refused because too many were in flight", true, refused_},
          {"teratron_prompt_tokens_total", "tokens of texts read", true, tokens_}};
}

}  // namespace teratron
