# Third-party libraries. Each is linked only by the folder that may use it (the layer rule of the README).
# scripts/setup.sh installs the Debian packages that hold them.

find_package(MPI REQUIRED COMPONENTS CXX)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(Boost REQUIRED COMPONENTS program_options)
find_package(PkgConfig REQUIRED)
pkg_check_modules(HDF5 REQUIRED IMPORTED_TARGET hdf5-openmpi)

if(DEW_BENCHMARKS)
  # Only to be measured beside our own matrix products.
  # oneDNN without its CMake package: Debian's asks for OpenCL, which nothing here uses.
  find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.h REQUIRED)
  find_library(DNNL_LIBRARY dnnl REQUIRED)
  add_library(DNNL::dnnl INTERFACE IMPORTED)
  target_include_directories(DNNL::dnnl INTERFACE ${DNNL_INCLUDE_DIR})
  target_link_libraries(DNNL::dnnl INTERFACE ${DNNL_LIBRARY})
  pkg_check_modules(OPENBLAS REQUIRED IMPORTED_TARGET openblas)
endif()
