// CPU loop of kernels/random.h: flat, cut between threads.
#pragma once

#include "kernels/random.h"

namespace dew::kernels::cpu {

void fill_normal(std::uint64_t key, std::int64_t begin, double stddev, const Tensor& x);

}  // namespace dew::kernels::cpu
