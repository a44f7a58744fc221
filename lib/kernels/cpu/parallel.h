// Work shared between the OpenMP threads of a rank. Bodies must give the same bits wherever the cuts fall,
// and must not throw.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace dew::kernels::cpu {

/// Elements below which a second thread costs more than it saves (waking one takes some microseconds).
inline constexpr std::int64_t kParallelElements = 32768;

/// Calls body(begin, end) on parts of [0, n), one a thread, each starting at a multiple of `grain`. One part
/// when the whole work, n times `cost` elements, is small, or inside a parallel region.
template <class Body>
void parallel_ranges(std::int64_t n, std::int64_t grain, std::int64_t cost, Body&& body) {
  const std::int64_t grains = (n + grain - 1) / grain;
  if (grains < 2 || n * cost < kParallelElements || omp_in_parallel() != 0 || omp_get_max_threads() == 1) {
    if (n > 0) body(std::int64_t{0}, n);
    return;
  }
#pragma omp parallel default(none) shared(n, grain, grains, body)
  {
    const std::int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
    const std::int64_t begin = grains * thread / threads * grain;
    const std::int64_t end = std::min(n, grains * (thread + 1) / threads * grain);
    if (begin < end) body(begin, end);
  }
}

/// The grain of flat loops: whole cache lines and vectors, so that threads do not share them.
inline constexpr std::int64_t kFlatGrain = 1024;

/// body(begin, end) on parts of a flat loop over n elements.
template <class Body>
void parallel_flat(std::int64_t n, Body&& body) {
  parallel_ranges(n, kFlatGrain, 1, body);
}

/// body(begin, end) on parts of [0, rows) of `cost` elements each.
template <class Body>
void parallel_rows(std::int64_t rows, std::int64_t cost, Body&& body) {
  parallel_ranges(rows, 1, std::max<std::int64_t>(cost, 1), body);
}

}  // namespace dew::kernels::cpu
