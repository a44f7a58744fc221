#include "train/schedules.h"

#include <algorithm>
#include <span>

#include "base/check.h"

namespace dew {
namespace {

/// What a stage does over and over, in this order, `lag` steps behind the first forward.
struct Track {
  Act act = Act::kForward;
  int lag = 0;
  Program visits;
};

Track in_order(Act act, int lag, int microbatches) {
  Track track{act, lag, {}};
  for (int m = 0; m < microbatches; ++m) track.visits.push_back({act, 0, m});
  return track;
}

// Step k takes visit k - lag of each track, where there is one. Every schedule here is a choice of lags.
Program merge(std::span<const Track> tracks) {
  int steps = 0;
  for (const Track& track : tracks)
    steps = std::max(steps, track.lag + static_cast<int>(track.visits.size()));
  Program program;
  for (int k = 0; k < steps; ++k) {
    for (const Track& track : tracks) {
      const int visit = k - track.lag;
      if (visit >= 0 && visit < static_cast<int>(track.visits.size()))
        program.push_back(track.visits[static_cast<std::size_t>(visit)]);
    }
  }
  return program;
}

void check_stage(const PipelineShape& shape, int stage) {
  DEW_CHECK(shape.stages >= 1 && shape.microbatches >= 1 && shape.chunks >= 1, shape.stages,
            shape.microbatches, shape.chunks);
  DEW_CHECK(stage >= 0 && stage < shape.stages, stage, shape.stages);
}

Program forward_then_backward(const PipelineShape& shape, int stage, int lag) {
  check_stage(shape, stage);
  DEW_CHECK(shape.chunks == 1, shape.chunks);
  const int n = shape.microbatches;
  return merge(std::vector{in_order(Act::kForward, 0, n), in_order(Act::kBackward, lag, n)});
}

Program forward_input_weight(const PipelineShape& shape, int stage, int input_lag, int weight_lag) {
  check_stage(shape, stage);
  DEW_CHECK(shape.chunks == 1, shape.chunks);
  const int n = shape.microbatches;
  return merge(std::vector{in_order(Act::kForward, 0, n), in_order(Act::kBackwardInput, input_lag, n),
                           in_order(Act::kBackwardWeight, weight_lag, n)});
}

/// Sizes of the groups that go round the chunks together.
std::vector<int> groups_of(const PipelineShape& shape) {
  const int count = std::max(1, shape.microbatches / shape.stages);
  std::vector<int> sizes(static_cast<std::size_t>(count), shape.microbatches / count);
  for (int g = 0; g < shape.microbatches % count; ++g) ++sizes[static_cast<std::size_t>(g)];
  return sizes;
}

Track in_groups(Act act, int lag, const PipelineShape& shape, std::span<const int> groups) {
  Track track{act, lag, {}};
  int first = 0;
  for (int size : groups) {
    for (int c = 0; c < shape.chunks; ++c) {
      const int chunk = act == Act::kForward ? c : shape.chunks - 1 - c;
      for (int m = first; m < first + size; ++m) track.visits.push_back({act, chunk, m});
    }
    first += size;
  }
  return track;
}

}  // namespace

Program sequential(const PipelineShape& shape, int stage) {
  DEW_CHECK(shape.stages == 1, shape.stages);
  return forward_then_backward(shape, stage, 0);
}

Program split_backward(const PipelineShape& shape, int stage) {
  DEW_CHECK(shape.stages == 1, shape.stages);
  return forward_input_weight(shape, stage, 0, 0);
}

Program gpipe(const PipelineShape& shape, int stage) {
  return forward_then_backward(shape, stage, shape.microbatches);
}

Program one_f_one_b(const PipelineShape& shape, int stage) {
  return forward_then_backward(shape, stage, shape.stages - 1 - stage);
}

// A group of fewer than S microbatches between others could leave stages waiting for each other: its chunks
// follow faster than the chain goes round.
Program interleaved(const PipelineShape& shape, int stage) {
  if (shape.chunks == 1) return one_f_one_b(shape, stage);
  check_stage(shape, stage);
  const std::vector<int> groups = groups_of(shape);
  const int lag = 2 * (shape.stages - 1 - stage) + (shape.chunks - 1) * groups.front();
  return merge(
      std::vector{in_groups(Act::kForward, 0, shape, groups), in_groups(Act::kBackward, lag, shape, groups)});
}

Program zero_bubble(const PipelineShape& shape, int stage) {
  return forward_input_weight(shape, stage, shape.stages - 1 - stage, shape.stages - 1);
}

Program compute_program(PipelineSchedule kind, const PipelineShape& shape, int stage) {
  const std::string obstacle = schedule_obstacle(kind, shape);
  DEW_CHECK(obstacle.empty(), obstacle);
  if (shape.stages == 1) return sequential(shape, stage);
  switch (kind) {
    case PipelineSchedule::kGpipe:
      return gpipe(shape, stage);
    case PipelineSchedule::kOneFOneB:
      return one_f_one_b(shape, stage);
    case PipelineSchedule::kInterleaved:
      return interleaved(shape, stage);
    case PipelineSchedule::kZeroBubble:
      return zero_bubble(shape, stage);
  }
  throw Error("no such schedule");
}

std::string schedule_obstacle(PipelineSchedule kind, const PipelineShape& shape) {
  const auto count = [](int n, const char* what) {
    return std::to_string(n) + ' ' + what + (n == 1 ? "" : "s");
  };
  const std::string numbers = count(shape.stages, "stage") + ", " + std::to_string(shape.microbatches) +
                              " microbatches" + ", " + count(shape.chunks, "chunk") + " a rank: ";
  if (shape.stages < 1 || shape.microbatches < 1 || shape.chunks < 1)
    return numbers + "each must be at least 1";
  if (shape.chunks > 1 && shape.stages == 1) return numbers + "one stage has one chunk";
  if (shape.chunks > 1 && kind != PipelineSchedule::kInterleaved)
    return numbers + "only the interleaved schedule has several chunks";
  return {};
}

}  // namespace dew
