#include "comm/mesh.h"

#include <bit>
#include <string>

#include "comm/agreement.h"

namespace dew {

namespace {

std::string group_name(const MeshShape& shape, AxisSet axes) {
  const bool everyone = shape.size_of(axes) == shape.size() && std::popcount(axes.bits()) > 1;
  return everyone ? "world" : axes.str();
}

}  // namespace

template <class Make>
void Mesh::build_groups(std::span<const AxisSet> groups, const Make& make) {
  const auto build = [&](AxisSet axes) {
    axes = effective(axes);
    if (!groups_.contains(axes.bits())) groups_[axes.bits()] = make(axes);
  };
  // One rank alone first: axes of extent 1 need no group of their own.
  groups_[AxisSet{}.bits()] = make_self_communicator("self");
  for (Axis axis : kAllAxes) build(AxisSet{axis});
  build(kDataAxes);
  for (AxisSet axes : groups) build(axes);
  build(kEveryAxis);
}

Mesh::Mesh(const HostGroup& ranks, const MeshShape& shape, std::span<const AxisSet> groups)
    : shape_(shape), progress_(std::make_unique<MpiProgress>()) {
  DEW_CHECK(shape.size() == ranks.size(), "the mesh has", shape.size(), "ranks, the job", ranks.size());
  coord_ = shape_.coord_of(ranks.rank());
  build_groups(groups, [&](AxisSet axes) {
    HostGroup group = ranks.split(shape_.group_of(axes, coord_), shape_.index_in(axes, coord_));
    return make_mpi_communicator(group_name(shape_, axes), std::move(group), *progress_);
  });
}

Mesh::Mesh(const MeshShape& shape, const MeshCoord& coord, std::span<const AxisSet> groups)
    : shape_(shape), coord_(coord), progress_(std::make_unique<MpiProgress>()) {
  for (Axis axis : kAllAxes) {
    DEW_CHECK(0 <= this->coord(axis) && this->coord(axis) < extent(axis), name_of(axis), this->coord(axis));
  }
  build_groups(groups, [&](AxisSet axes) {
    return make_dry_communicator(group_name(shape_, axes), shape_.index_in(axes, coord_),
                                 shape_.size_of(axes));
  });
}

Communicator& Mesh::over(AxisSet axes) const {
  const auto found = groups_.find(effective(axes).bits());
  DEW_CHECK(found != groups_.end(), "no group was built over", effective(axes).str());
  return *found->second;
}

std::map<std::string, Traffic> Mesh::traffic() const {
  std::map<std::string, Traffic> by_name;
  for (const auto& [bits, group] : groups_) {
    if (group->size() > 1) by_name[group->name()] = group->traffic();
  }
  return by_name;
}

void Mesh::clear_traffic() {
  for (const auto& [bits, group] : groups_) group->clear_traffic();
}

void Mesh::check_same_calls(const HostGroup& ranks) const {
  for (const auto& [bits, group] : groups_) {
    if (group->size() == 1) continue;
    const HostGroup host = ranks.split(shape_.group_of(AxisSet::of(bits), coord_), group->rank());
    // Ranks of other groups must hear of it too, or they would go on alone.
    const std::string failure =
        first_failure(ranks, [&group = group, &host] { dew::check_same_calls(*group, host); });
    if (!failure.empty()) throw SharedError(failure);
  }
}

AxisSet Mesh::effective(AxisSet axes) const {
  for (Axis axis : kAllAxes) {
    if (extent(axis) == 1) axes = axes - AxisSet{axis};
  }
  return axes;
}

}  // namespace dew
