// The check around every MPI call. Needs no MPI header, so that any file of this folder may include it.
#pragma once

namespace dew::detail {

/// Throws Error with the call, its place and MPI's own text unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* call, const char* file, int line);

}  // namespace dew::detail

#define DEW_MPI(call) ::dew::detail::check_mpi((call), #call, __FILE__, __LINE__)
