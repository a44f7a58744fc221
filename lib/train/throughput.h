// Speed in the terms of the metrics: tokens a second, model FLOP utilisation, and the peak it is measured
// against.
#pragma once

#include <string_view>

#include "base/dtype.h"
#include "comm/host_group.h"
#include "tensor/stream.h"

namespace dew {

/// What MFU counts, told once in the head of metrics.jsonl.
inline constexpr std::string_view kFlopConvention =
    "matrix products and attention of forward and backward, nothing counted twice for recomputation, "
    "attention by the "
    "pairs that the mask shows (the ends of documents left aside)";

/// FLOP/s of one rank on a square matrix product of the compute dtype while all ranks of its node multiply at
/// the same time: the mean over about 30 ms, then the least of all ranks. Collective over `ranks`.
double measure_peak(DType dtype, const HostGroup& ranks, Stream& stream);

/// Sums over the steps since the last report.
struct Throughput {
  std::int64_t steps = 0;
  double seconds = 0, data_wait = 0, comm_wait = 0;

  void add(double step_seconds, double data_wait_seconds, double comm_wait_seconds) {
    ++steps;
    seconds += step_seconds;
    data_wait += data_wait_seconds;
    comm_wait += comm_wait_seconds;
  }
  double step_seconds() const { return steps == 0 ? 0 : seconds / static_cast<double>(steps); }
};

}  // namespace dew
