#include "comm/mpi_check.h"

#include <mpi.h>

#include <array>
#include <string>

#include "base/check.h"

namespace dew::detail {

void check_mpi(int code, const char* call, const char* file, int line) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING + 1> text{};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
  throw Error(std::string(call) + " failed: " + std::string(text.data(), static_cast<std::size_t>(length)) +
              " (" + file + ":" + std::to_string(line) + ")");
}

}  // namespace dew::detail
