#include "kernels/threads.h"

#include <omp.h>

namespace dew::kernels {

void set_threads(int count) {
  omp_set_num_threads(count);
}

}  // namespace dew::kernels
