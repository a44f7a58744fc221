#include "io/hdf5_file.h"

#include <hdf5.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include "base/check.h"

namespace dew {
namespace {

static_assert(std::is_same_v<hid_t, std::int64_t> && std::is_same_v<herr_t, int>);

/// The library's account of its last failure: what was asked, and the innermost reason.
std::string last_reason() {
  std::vector<std::string> lines;
  const auto collect = [](unsigned, const H5E_error2_t* fault, void* into) -> herr_t {
    if (fault->desc != nullptr) static_cast<std::vector<std::string>*>(into)->emplace_back(fault->desc);
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, collect, &lines);
  if (lines.empty()) return "no reason given";
  std::string text = lines.size() == 1 ? lines.front() : lines.front() + ": " + lines.back();
  std::ranges::replace(text, '\n', ' ');
  return text;
}

/// Whether the last failure was a call of the system that a signal interrupted: the library makes reads again
/// but not the opening of a file, and tells the number of the error in its text alone.
bool was_interrupted() {
  bool found = false;
  const auto look = [](unsigned, const H5E_error2_t* fault, void* into) -> herr_t {
    const std::string number = "errno = " + std::to_string(EINTR) + ",";
    if (fault->desc != nullptr && std::string_view(fault->desc).find(number) != std::string_view::npos)
      *static_cast<bool*>(into) = true;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, look, &found);
  return found;
}

[[noreturn]] void fail(const std::string& what) {
  throw Error("HDF5 cannot " + what + ": " + last_reason());
}

/// The result of a library call; negative values are failures.
template <class Result>
Result checked(Result result, const std::string& what) {
  if (result < 0) fail(what);
  return result;
}

Hdf5Id made(hid_t id, Hdf5Id::Closer closer, const std::string& what) {
  return Hdf5Id(checked(id, what), closer);
}

using Driver = herr_t (*)(hid_t);

/// Access through plain calls of the system. Checkpoints appear by rename and never change, so readers need
/// no lock, which some network file systems do not have. Failures are told by exceptions, not printed.
Hdf5Id access_through(Driver driver) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  Hdf5Id access = made(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "make access properties");
  checked(driver(access.get()), "choose its driver");
  checked(H5Pset_file_locking(access.get(), false, true), "do without file locks");
  return access;
}

/// An identifier below 0 on failure.
hid_t open_to_read(const std::string& path) {
  const Hdf5Id access = access_through(H5Pset_fapl_sec2);
  hid_t id = H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get());
  while (id < 0 && was_interrupted()) id = H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get());
  return id;
}

Hdf5Id with_groups_above() {
  Hdf5Id links = made(H5Pcreate(H5P_LINK_CREATE), H5Pclose, "make link properties");
  checked(H5Pset_create_intermediate_group(links.get(), 1), "make groups on the way");
  return links;
}

std::array<hsize_t, Shape::kMaxDims> sizes_of(std::span<const std::int64_t> extents) {
  std::array<hsize_t, Shape::kMaxDims> sizes{};
  std::ranges::transform(extents, sizes.begin(), [](std::int64_t e) { return static_cast<hsize_t>(e); });
  return sizes;
}

Hdf5Id space_of(const Shape& shape) {
  const char* what = "make a dataspace";
  if (shape.dims() == 0) return made(H5Screate(H5S_SCALAR), H5Sclose, what);
  return made(H5Screate_simple(shape.dims(), sizes_of(shape.extents()).data(), nullptr), H5Sclose, what);
}

Hdf5Id text_type() {
  Hdf5Id type = made(H5Tcopy(H5T_C_S1), H5Tclose, "make a text type");
  // Of variable length: those are stored outside of the object's header, which holds 64 KiB.
  checked(H5Tset_size(type.get(), H5T_VARIABLE), "make a text type");
  checked(H5Tset_cset(type.get(), H5T_CSET_UTF8), "make a text type");
  return type;
}

hid_t memory_type(DType dtype) {
  return dtype == DType::kF64 ? H5T_NATIVE_DOUBLE : H5T_NATIVE_FLOAT;
}

}  // namespace

Hdf5Id::Hdf5Id(Hdf5Id&& other) noexcept : id_(std::exchange(other.id_, -1)), closer_(other.closer_) {}

Hdf5Id& Hdf5Id::operator=(Hdf5Id&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(closer_, other.closer_);
  return *this;
}

Hdf5Id::~Hdf5Id() {
  close();
}

bool Hdf5Id::close() {
  return id_ < 0 || closer_(std::exchange(id_, -1)) >= 0;
}

Hdf5Dataset::Hdf5Dataset(Hdf5Id id, std::string name) : id_(std::move(id)), name_(std::move(name)) {
  const Hdf5Id space = made(H5Dget_space(id_.get()), H5Sclose, "examine " + name_);
  const int dims = checked(H5Sget_simple_extent_ndims(space.get()), "examine " + name_);
  if (dims > Shape::kMaxDims) throw Error(name_ + " has " + std::to_string(dims) + " dims");
  std::array<hsize_t, Shape::kMaxDims> sizes{};
  checked(H5Sget_simple_extent_dims(space.get(), sizes.data(), nullptr), "examine " + name_);
  std::array<std::int64_t, Shape::kMaxDims> extents{};
  std::ranges::transform(sizes, extents.begin(),
                         [](hsize_t size) { return static_cast<std::int64_t>(size); });
  shape_ = Shape(std::span<const std::int64_t>(extents.data(), static_cast<std::size_t>(dims)));
  const Hdf5Id type = made(H5Dget_type(id_.get()), H5Tclose, "examine " + name_);
  const std::size_t bytes = H5Tget_size(type.get());
  if (H5Tget_class(type.get()) != H5T_FLOAT || (bytes != 4 && bytes != 8))
    throw Error(name_ + " holds neither f32 nor f64");
  dtype_ = bytes == 8 ? DType::kF64 : DType::kF32;
}

void Hdf5Dataset::read(const Slab& box, void* out) const {
  DEW_CHECK(box.global == shape_, name_, box.global, shape_);
  if (box.extent.numel() == 0) return;
  const Hdf5Id from = made(H5Dget_space(id_.get()), H5Sclose, "read " + name_);
  const Hdf5Id to = space_of(box.extent);
  if (box.extent.dims() > 0)
    checked(H5Sselect_hyperslab(from.get(), H5S_SELECT_SET, sizes_of(box.offset).data(), nullptr,
                                sizes_of(box.extent.extents()).data(), nullptr),
            "choose a part of " + name_);
  checked(H5Dread(id_.get(), memory_type(dtype_), to.get(), from.get(), H5P_DEFAULT, out), "read " + name_);
}

Hdf5File Hdf5File::create(const std::string& path) {
  // The sec2 driver resolves links first, and that of a file in memory leads nowhere.
  const Hdf5Id access = access_through(H5Pset_fapl_stdio);
  return {made(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), H5Fclose, "make " + path),
          path};
}

Hdf5File Hdf5File::open(const std::string& path) {
  return {made(open_to_read(path), H5Fclose, "open " + path), path};
}

bool Hdf5File::opens(const std::string& path) {
  return Hdf5Id(open_to_read(path), H5Fclose).get() >= 0;
}

void Hdf5File::make_group(const std::string& name) {
  made(H5Gcreate2(id_.get(), name.c_str(), with_groups_above().get(), H5P_DEFAULT, H5P_DEFAULT), H5Gclose,
       "make " + name);
}

std::int64_t Hdf5File::make_dataset(const std::string& name, const Shape& shape, DType dtype) {
  DEW_CHECK(dtype == DType::kF32 || dtype == DType::kF64, name, name_of(dtype));
  const Hdf5Id how = made(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "make dataset properties");
  checked(H5Pset_layout(how.get(), H5D_CONTIGUOUS), "choose a contiguous layout");
  checked(H5Pset_alloc_time(how.get(), H5D_ALLOC_TIME_EARLY), "place datasets early");
  checked(H5Pset_fill_time(how.get(), H5D_FILL_TIME_NEVER), "leave datasets unfilled");
  checked(H5Pset_obj_track_times(how.get(), false), "leave out times");  // the same state gives the same file
  const hid_t type = dtype == DType::kF64 ? H5T_IEEE_F64LE : H5T_IEEE_F32LE;
  const Hdf5Id space = space_of(shape), links = with_groups_above();
  const Hdf5Id id =
      made(H5Dcreate2(id_.get(), name.c_str(), type, space.get(), links.get(), how.get(), H5P_DEFAULT),
           H5Dclose, "make " + name);
  if (shape.numel() == 0) return -1;
  const haddr_t offset = H5Dget_offset(id.get());
  if (offset == HADDR_UNDEF) fail("place " + name);
  return static_cast<std::int64_t>(offset);
}

void Hdf5File::write_number(const std::string& object, const char* name, std::int64_t type,
                            const void* value) {
  const std::string what = "write attribute " + std::string(name) + " of " + object;
  const Hdf5Id space = space_of(Shape{});
  const Hdf5Id id = made(H5Acreate_by_name(id_.get(), object.c_str(), name, type, space.get(), H5P_DEFAULT,
                                           H5P_DEFAULT, H5P_DEFAULT),
                         H5Aclose, what);
  checked(H5Awrite(id.get(), type, value), what);
}

void Hdf5File::write_attribute(const std::string& object, const char* name, std::int64_t value) {
  write_number(object, name, H5T_NATIVE_INT64, &value);
}

void Hdf5File::write_attribute(const std::string& object, const char* name, std::uint64_t value) {
  write_number(object, name, H5T_NATIVE_UINT64, &value);
}

void Hdf5File::write_attribute(const std::string& object, const char* name, std::string_view value) {
  const std::string text(value);
  const char* pointer = text.c_str();
  write_number(object, name, text_type().get(), &pointer);
}

void Hdf5File::read_number(const std::string& object, const char* name, std::int64_t type,
                           void* value) const {
  const std::string what = "read attribute " + std::string(name) + " of " + object;
  const Hdf5Id id =
      made(H5Aopen_by_name(id_.get(), object.c_str(), name, H5P_DEFAULT, H5P_DEFAULT), H5Aclose, what);
  const Hdf5Id space = made(H5Aget_space(id.get()), H5Sclose, what);
  if (H5Sget_simple_extent_npoints(space.get()) != 1)
    throw Error("HDF5 cannot " + what + ": it is not one value");
  checked(H5Aread(id.get(), type, value), what);
}

std::int64_t Hdf5File::read_signed(const std::string& object, const char* name) const {
  std::int64_t value = 0;
  read_number(object, name, H5T_NATIVE_INT64, &value);
  return value;
}

std::uint64_t Hdf5File::read_unsigned(const std::string& object, const char* name) const {
  std::uint64_t value = 0;
  read_number(object, name, H5T_NATIVE_UINT64, &value);
  return value;
}

std::string Hdf5File::read_text(const std::string& object, const char* name) const {
  char* pointer = nullptr;
  read_number(object, name, text_type().get(), &pointer);
  if (pointer == nullptr) return "";
  std::string text(pointer);
  H5free_memory(pointer);
  return text;
}

bool Hdf5File::has_attribute(const std::string& object, const char* name) const {
  return checked(H5Aexists_by_name(id_.get(), object.c_str(), name, H5P_DEFAULT),
                 "look for attribute " + std::string(name) + " of " + object) > 0;
}

bool Hdf5File::has(const std::string& name) const {
  for (std::size_t end = name.find('/', 1);; end = name.find('/', end + 1)) {
    if (H5Lexists(id_.get(), name.substr(0, end).c_str(), H5P_DEFAULT) <= 0) return false;
    if (end == std::string::npos) return true;
  }
}

Hdf5Dataset Hdf5File::dataset(const std::string& name) const {
  return {made(H5Dopen2(id_.get(), name.c_str(), H5P_DEFAULT), H5Dclose, "open " + name + " in " + path_),
          name};
}

std::vector<std::string> Hdf5File::names() const {
  std::vector<std::string> found;
  const auto collect = [](hid_t, const char* name, const H5L_info_t*, void* into) -> herr_t {
    static_cast<std::vector<std::string>*>(into)->push_back("/" + std::string(name));
    return 0;
  };
  checked(H5Lvisit(id_.get(), H5_INDEX_NAME, H5_ITER_INC, collect, &found), "list " + path_);
  return found;
}

void Hdf5File::close() {
  if (!id_.close()) fail("close " + path_);
}

}  // namespace dew
