#include "html/plan_page.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "console/readable.h"
#include "html/page.h"
#include "html/page_files.h"

namespace teratron {
namespace {

using Json = nlohmann::ordered_json;

// Rows of timelines. Steps with more copies of a model have the same rows, so the page holds equal rows once.
class TimelineRows {
 public:
  std::size_t number_of(const std::vector<std::string>& rows) {
    const auto [known, is_new] = numbers_.emplace(rows, numbers_.size());
    if (is_new) all_.push_back(rows);
    return known->second;
  }
  const Json& all() const { return all_; }

 private:
  std::map<std::vector<std::string>, std::size_t> numbers_;
  Json all_ = Json::array();
};

Json json_of(const PlannedTimeline& timeline, TimelineRows& rows) {
  if (timeline.rows.empty()) return nullptr;
  return {{"windows", timeline.windows}, {"stages", timeline.stages}, {"rows", rows.number_of(timeline.rows)}};
}

Json json_of(const PlannedStep& step, TimelineRows& rows) {
  return {{"model", step.model},
          {"cluster", step.cluster},
          {"devices", step.devices},
          {"sequences", step.sequences},
          {"fits", step.fits},
          {"layout", step.layout},
          {"command", step.command},
          {"memory", step.memory},
          {"kinds", step.kinds},
          {"seconds", step.seconds},
          {"tokens_per_second", step.tokens_per_second},
          {"mfu", step.mfu},
          {"compute", step.compute},
          {"recompute", step.recompute},
          {"tensor", step.tensor},
          {"bubble", step.bubble},
          {"after", step.after},
          {"timeline", json_of(step.timeline, rows)}};
}

std::string json_of(const PlanPage& plan) {
  TimelineRows rows;
  Json clusters = Json::array(), steps = Json::array();
  for (const PlannedCluster& cluster : plan.clusters) {
    clusters.push_back(
        {{"name", cluster.name}, {"device", cluster.device}, {"room", cluster.room}, {"watts", cluster.watts}});
  }
  for (const PlannedStep& step : plan.steps) steps.push_back(json_of(step, rows));
  const Json json = {{"tokens", plan.tokens}, {"price", plan.price}, {"first", plan.first}, {"models", plan.models},
                     {"clusters", clusters},  {"kinds", plan.kinds}, {"steps", steps},      {"rows", rows.all()}};
  return within_script(json.dump(-1, ' ', true, Json::error_handler_t::replace));
}

void add_table(const PlanPage& plan, HtmlPage& page) {
  std::vector<std::vector<std::string>> rows;
  for (const PlannedStep& step : plan.steps) {
    rows.push_back({plan.models[step.model], plan.clusters[step.cluster].name, readable_integer(step.devices),
                    readable_integer(step.sequences), step.fits ? fmt::format("{:.4g}", step.seconds) : "does not fit",
                    step.fits ? readable_count(step.tokens_per_second) : "",
                    step.fits ? fmt::format("{:.1f}", 100 * step.mfu) : "",
                    step.memory > 0 ? readable_bytes(static_cast<std::uint64_t>(step.memory)) : "", step.layout});
  }
  page.begin_fold(counted(std::ssize(plan.steps), "planned step"));
  page.table("", {"model", "cluster", "devices", "sequences", "step, s", "tokens/s", "MFU, %", "memory", "layout"},
             rows);
  page.end_fold();
}

}  // namespace

std::string plan_page(const PlanPage& plan) {
  HtmlPage page(fmt::format("{} on {}", plan.model, plan.cluster));
  page.paragraph("Steps that were planned one by one. The controls move between them.");
  page.html(text_of(page_files(), "plan_controls"));
  page.section("All steps");
  add_table(plan, page);
  page.html(fmt::format("<script type=\"application/json\" id=\"plan\">{}</script>\n<script>{}</script>\n",
                        json_of(plan), text_of(page_files(), "plan_script")));
  return page.finish();
}

}  // namespace teratron
