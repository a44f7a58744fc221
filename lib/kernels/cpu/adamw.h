// CPU loop of kernels/adamw.h: flat, cut between threads.
#pragma once

#include "kernels/adamw.h"

namespace dew::kernels::cpu {

void adamw(const AdamWStep& step, const Tensor& gradient, const Tensor& w, const Tensor& m, const Tensor& v);

}  // namespace dew::kernels::cpu
