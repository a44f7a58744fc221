// How many threads the kernels of this process use.
#pragma once

namespace dew::kernels {

/// Sets the thread count of every CPU kernel for the rest of the process.
void set_threads(int count);

}  // namespace dew::kernels
