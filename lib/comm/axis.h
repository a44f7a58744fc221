// The six axes of the device mesh and the arithmetic of ranks and coordinates. Plain values: nothing here
// needs MPI.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace dew {

/// Default order, outermost first: ranks adjacent on the last axis are neighbours inside a node.
enum class Axis : std::uint8_t { kReplica, kStage, kFsdp, kExpert, kSequence, kTensor };
inline constexpr int kAxisCount = 6;
inline constexpr std::array<Axis, kAxisCount> kAllAxes{Axis::kReplica, Axis::kStage,    Axis::kFsdp,
                                                       Axis::kExpert,  Axis::kSequence, Axis::kTensor};

/// "replica", "stage", "fsdp", "expert", "sequence", "tensor".
std::string_view name_of(Axis axis);
std::optional<Axis> axis_named(std::string_view name);

/// A set of axes.
class AxisSet {
 public:
  constexpr AxisSet() = default;
  constexpr AxisSet(std::initializer_list<Axis> axes) {
    for (Axis axis : axes) *this = with(axis);
  }
  constexpr bool has(Axis axis) const { return (bits_ >> static_cast<int>(axis) & 1) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr AxisSet with(Axis axis) const { return AxisSet(bits_ | (1u << static_cast<int>(axis))); }
  constexpr AxisSet operator|(AxisSet other) const { return AxisSet(bits_ | other.bits_); }
  constexpr AxisSet operator-(AxisSet other) const { return AxisSet(bits_ & ~other.bits_); }
  constexpr bool operator==(const AxisSet&) const = default;
  constexpr unsigned bits() const { return bits_; }
  static constexpr AxisSet of(unsigned bits) { return AxisSet(bits); }  ///< inverse of bits()
  std::string str() const;                                              ///< "replica x fsdp", or "none"

 private:
  constexpr explicit AxisSet(unsigned bits) : bits_(bits) {}
  unsigned bits_ = 0;
};

/// The axes over which the global batch is split: rows over replica, fsdp and expert, positions over
/// sequence.
inline constexpr AxisSet kDataAxes{Axis::kReplica, Axis::kFsdp, Axis::kExpert, Axis::kSequence};
/// The axes over which the rows of the global batch are split.
inline constexpr AxisSet kRowAxes{Axis::kReplica, Axis::kFsdp, Axis::kExpert};
inline constexpr AxisSet kEveryAxis = kDataAxes | AxisSet{Axis::kStage, Axis::kTensor};

/// One coordinate an axis, indexed by Axis.
using MeshCoord = std::array<int, kAxisCount>;

/// Extents of the mesh and the order in which axes vary over ranks.
struct MeshShape {
  std::array<int, kAxisCount> extent{1, 1, 1, 1, 1, 1};  ///< indexed by Axis
  std::array<Axis, kAxisCount> order = kAllAxes;         ///< outermost first

  int operator[](Axis axis) const { return extent[static_cast<std::size_t>(axis)]; }
  int& operator[](Axis axis) { return extent[static_cast<std::size_t>(axis)]; }
  int size() const;                           ///< product of all extents
  int size_of(AxisSet axes) const;            ///< product of the extents of a set
  MeshCoord coord_of(int rank) const;         ///< inverse of rank_of
  int rank_of(const MeshCoord& coord) const;  ///< in [0, size())
  /// Position within the group that varies over `axes` and shares the rest: row-major in `order`, in [0,
  /// size_of(axes)).
  int index_in(AxisSet axes, const MeshCoord& coord) const;
  /// Number of the group over `axes` that holds the coordinate: index_in of all other axes.
  int group_of(AxisSet axes, const MeshCoord& coord) const { return index_in(kEveryAxis - axes, coord); }

  bool operator==(const MeshShape&) const = default;
};

}  // namespace dew
