// How a product is cut between threads, shared by the products of every format.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/gemm.h"

namespace dew::kernels::cpu {

/// Vectors of a panel of b: as many as the widest inner loop takes at once.
inline constexpr std::int64_t kPanelVectors = 4;
/// Multiplications below which a second thread costs more than it saves.
inline constexpr double kParallelProducts = 1 << 18;
/// Tasks for each thread, so that one that is held up does not hold up all.
inline constexpr std::int64_t kTasksPerThread = 2;

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

inline std::int64_t gemm_threads(const GemmShape& s) {
  const double products = static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  return products < kParallelProducts || omp_in_parallel() != 0 ? 1 : omp_get_max_threads();
}

/// How c is cut into tasks.
struct Grid {
  std::int64_t down = 1, across = 1;
};

/// Each task copies its own part of a and b: of the grids with enough tasks, the one that copies least.
inline Grid grid_of(const GemmShape& s, std::int64_t threads, std::int64_t panels) {
  if (threads == 1) return {};
  const std::int64_t tasks = threads * kTasksPerThread;
  Grid best{.down = tasks};
  for (std::int64_t across = 1; across <= std::min(tasks, panels); ++across) {
    const Grid grid{.down = ceil_div(tasks, across), .across = across};
    if (grid.across * s.m + grid.down * s.n < best.across * s.m + best.down * s.n) best = grid;
  }
  return best;
}

struct Span {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};

/// Calls run(rows, columns, thread) for every task of c; columns are whole panels of `panel`.
template <class Run>
void for_tasks(const GemmShape& shape, std::int64_t panel, Run&& run) {
  const std::int64_t threads = gemm_threads(shape), panels = ceil_div(shape.n, panel);
  const Grid grid = grid_of(shape, threads, panels);
#pragma omp parallel for num_threads(static_cast <int>(threads)) schedule(dynamic)
  for (std::int64_t task = 0; task < grid.down * grid.across; ++task) {
    const std::int64_t i = task / grid.across, j = task % grid.across;
    const Span rows{shape.m * i / grid.down, shape.m * (i + 1) / grid.down};
    const Span columns{panels * j / grid.across * panel,
                       std::min(panels * (j + 1) / grid.across * panel, shape.n)};
    run(rows, columns, omp_get_thread_num());
  }
}

}  // namespace dew::kernels::cpu
