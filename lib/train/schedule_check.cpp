#include "train/schedule_check.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/check.h"
#include "train/program_audit.h"
#include "train/schedule_timeline.h"

namespace dew {
namespace {

// Counts of a stage follow from the order of its program alone.
void count_stage(const Program& program, std::span<const Interval> intervals, ScheduleReport& report) {
  double busy = 0;
  int live = 0, deferred = 0, peak_live = 0, peak_deferred = 0;
  for (std::size_t i = 0; i < program.size(); ++i) {
    const Act act = program[i].act;
    busy += intervals[i].end - intervals[i].start;
    report.seconds = std::max(report.seconds, intervals[i].end);
    if (act == Act::kForward) peak_live = std::max(peak_live, ++live);
    if (act == Act::kBackwardInput) peak_deferred = std::max(peak_deferred, ++deferred);
    if (act == Act::kBackwardWeight) --deferred;
    if (act == Act::kBackward || act == Act::kBackwardWeight) --live;
  }
  report.busy.push_back(busy);
  report.peak_live.push_back(peak_live);
  report.peak_deferred.push_back(peak_deferred);
}

ScheduleReport check(std::span<const Program> programs, const PipelineShape& shape,
                     std::span<const ActionTimes> times, bool training) {
  DEW_CHECK(shape.stages >= 1 && shape.microbatches >= 1 && shape.chunks >= 1, shape.stages,
            shape.microbatches, shape.chunks);
  DEW_CHECK(programs.size() == static_cast<std::size_t>(shape.stages), programs.size(), shape.stages);
  for (int s = 0; s < shape.stages; ++s)
    audit_program(programs[static_cast<std::size_t>(s)], shape, s, training);
  const Timeline timeline = play(programs, shape, times);
  ScheduleReport report;
  for (std::size_t s = 0; s < programs.size(); ++s) count_stage(programs[s], timeline[s], report);
  return report;
}

std::string label_of(const Action& action, bool with_chunk) {
  const std::string text = to_text(action);
  return with_chunk ? text : text.substr(1);  // the one chunk is 0
}

void pad_to(std::string& line, std::size_t width) {
  line.resize(std::max(line.size(), width), ' ');
}

void end_line(std::string& text, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  text += line + '\n';
}

}  // namespace

double ScheduleReport::bubble() const {
  return 1 - std::accumulate(busy.begin(), busy.end(), 0.0) / (static_cast<double>(busy.size()) * seconds);
}

int ScheduleReport::most_live() const {
  return *std::max_element(peak_live.begin(), peak_live.end());
}

ScheduleReport check_schedule(std::span<const Program> programs, const PipelineShape& shape,
                              std::span<const ActionTimes> times) {
  return check(programs, shape, times, true);
}

ScheduleReport check_evaluation(std::span<const Program> programs, const PipelineShape& shape,
                                std::span<const ActionTimes> times) {
  return check(programs, shape, times, false);
}

std::string draw(std::span<const Program> programs, const PipelineShape& shape) {
  constexpr std::array<ActionTimes, 1> kUnits{};
  const Timeline timeline = play(programs, shape, kUnits);
  const bool with_chunk = shape.chunks > 1;
  std::size_t units = 0, width = 0;
  std::vector<std::vector<std::string>> rows(programs.size());
  for (std::size_t s = 0; s < programs.size(); ++s) {
    for (std::size_t i = 0; i < programs[s].size(); ++i) {
      if (!computes(programs[s][i].act)) continue;
      const auto [start, end] = timeline[s][i];
      rows[s].resize(static_cast<std::size_t>(start), ".");
      rows[s].push_back(label_of(programs[s][i], with_chunk));
      width = std::max(width, rows[s].back().size());
      rows[s].resize(static_cast<std::size_t>(end), "-");
    }
    units = std::max(units, rows[s].size());
  }
  width = std::max(width, std::to_string(units).size()) + 1;
  const std::size_t head = 7 + std::to_string(programs.size() - 1).size();  // "stage 0 "
  std::string text, line = "unit";
  for (std::size_t t = 0; t < units; ++t) {
    pad_to(line, head + t * width);
    line += std::to_string(t);
  }
  end_line(text, line);
  for (std::size_t s = 0; s < rows.size(); ++s) {
    rows[s].resize(units, ".");
    line = "stage " + std::to_string(s);
    for (std::size_t t = 0; t < units; ++t) {
      pad_to(line, head + t * width);
      line += rows[s][t];
    }
    end_line(text, line);
  }
  return text;
}

}  // namespace dew
