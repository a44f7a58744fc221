// HDF5 files as owned objects; every refusal of the library is an Error with the library's own text.
// A file is read by any number of processes on their own, and made by one: nothing here is collective. HDF5
// is not safe for threads, so one thread of a process uses this.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/shape.h"
#include "comm/layout.h"

namespace dew {

/// An identifier of the library, closed at the end of its scope.
class Hdf5Id {
 public:
  using Closer = int (*)(std::int64_t);
  Hdf5Id() = default;
  Hdf5Id(std::int64_t id, Closer closer) : id_(id), closer_(closer) {}
  Hdf5Id(Hdf5Id&& other) noexcept;
  Hdf5Id& operator=(Hdf5Id&& other) noexcept;
  ~Hdf5Id();

  std::int64_t get() const { return id_; }
  /// Closes now; true on success. The library must not be asked twice.
  bool close();

 private:
  std::int64_t id_ = -1;
  Closer closer_ = nullptr;
};

/// A dataset open for reading.
class Hdf5Dataset {
 public:
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }  ///< f32 or f64, whatever the byte order in the file
  /// Reads the elements of a box in order, in the dataset's dtype, to `out`. Throws Error.
  void read(const Slab& box, void* out) const;

 private:
  friend class Hdf5File;
  Hdf5Dataset(Hdf5Id id, std::string name);
  Hdf5Id id_;
  std::string name_;
  Shape shape_;
  DType dtype_ = DType::kF32;
};

class Hdf5File {
 public:
  /// Makes a file in place of an old one. Throws Error. The library cannot survive a write that the system
  /// refuses (it faults when it ends), so the path is one where writes do not fail.
  static Hdf5File create(const std::string& path);
  /// Opens a file for reading. Throws Error when it is no HDF5 file or shorter than it should be.
  static Hdf5File open(const std::string& path);
  static bool opens(const std::string& path);  ///< whether `open` would succeed

  /// Makes a group and the groups above it.
  void make_group(const std::string& name);
  /// Makes a dataset, contiguous and not filled, and the groups above it. Returns where its elements lie in
  /// the file, in bytes from the start; -1 for a dataset without elements.
  std::int64_t make_dataset(const std::string& name, const Shape& shape, DType dtype);

  /// Attributes of a group or dataset. Writing makes the attribute; reading throws Error where it is missing.
  void write_attribute(const std::string& object, const char* name, std::int64_t value);
  void write_attribute(const std::string& object, const char* name, std::uint64_t value);
  void write_attribute(const std::string& object, const char* name, std::string_view value);
  std::int64_t read_signed(const std::string& object, const char* name) const;
  std::uint64_t read_unsigned(const std::string& object, const char* name) const;
  std::string read_text(const std::string& object, const char* name) const;
  bool has_attribute(const std::string& object, const char* name) const;  ///< throws Error without the object

  bool has(const std::string& name) const;
  Hdf5Dataset dataset(const std::string& name) const;  ///< throws Error when missing or neither f32 nor f64
  std::vector<std::string> names() const;              ///< of every group and dataset, with the leading "/"

  /// Ends the file. Throws Error.
  void close();

 private:
  Hdf5File(Hdf5Id id, std::string path) : id_(std::move(id)), path_(std::move(path)) {}
  void write_number(const std::string& object, const char* name, std::int64_t type, const void* value);
  void read_number(const std::string& object, const char* name, std::int64_t type, void* value) const;

  Hdf5Id id_;
  std::string path_;
};

}  // namespace dew
