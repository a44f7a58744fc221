#include "comm/axis.h"

#include "base/check.h"

namespace dew {

std::string_view name_of(Axis axis) {
  constexpr std::array<std::string_view, kAxisCount> kNames{"replica", "stage",    "fsdp",
                                                            "expert",  "sequence", "tensor"};
  return kNames[static_cast<std::size_t>(axis)];
}

std::optional<Axis> axis_named(std::string_view name) {
  for (Axis axis : kAllAxes) {
    if (name_of(axis) == name) return axis;
  }
  return std::nullopt;
}

std::string AxisSet::str() const {
  std::string text;
  for (Axis axis : kAllAxes) {
    if (!has(axis)) continue;
    if (!text.empty()) text += " x ";
    text += name_of(axis);
  }
  return text.empty() ? "none" : text;
}

int MeshShape::size() const {
  return size_of(kEveryAxis);
}

int MeshShape::size_of(AxisSet axes) const {
  int product = 1;
  for (Axis axis : kAllAxes) {
    if (axes.has(axis)) product *= (*this)[axis];
  }
  return product;
}

MeshCoord MeshShape::coord_of(int rank) const {
  DEW_CHECK(0 <= rank && rank < size(), rank, size());
  MeshCoord coord{};
  for (std::size_t i = kAxisCount; i-- > 0;) {
    const Axis axis = order[i];
    coord[static_cast<std::size_t>(axis)] = rank % (*this)[axis];
    rank /= (*this)[axis];
  }
  return coord;
}

int MeshShape::rank_of(const MeshCoord& coord) const {
  return index_in(kEveryAxis, coord);
}

int MeshShape::index_in(AxisSet axes, const MeshCoord& coord) const {
  int index = 0;
  for (Axis axis : order) {
    if (axes.has(axis)) index = index * (*this)[axis] + coord[static_cast<std::size_t>(axis)];
  }
  return index;
}

}  // namespace dew
