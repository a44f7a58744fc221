#include "comm/host_group.h"

#include <mpi.h>

#include <climits>
#include <exception>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "comm/mpi_check.h"

namespace dew {

struct HostGroup::State {
  MPI_Comm comm = MPI_COMM_NULL;  // null for a process alone
  bool owned = false;
  int rank = 0, size = 1;

  State() = default;
  State(MPI_Comm taken, bool own) : comm(taken), owned(own) {
    DEW_MPI(MPI_Comm_rank(comm, &rank));
    DEW_MPI(MPI_Comm_size(comm, &size));
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    // While an exception unwinds, peers may be anywhere: the job is about to end and the handle is left to
    // it.
    int finalized = 1;
    if (!owned || std::uncaught_exceptions() > 0) return;
    if (MPI_Finalized(&finalized) == MPI_SUCCESS && finalized == 0) MPI_Comm_free(&comm);
  }
};

namespace {

int count_of(std::size_t size) {
  DEW_CHECK(size <= static_cast<std::size_t>(INT_MAX), size);
  return static_cast<int>(size);
}

// Every rank adds in rank order, so that all get the same bits.
template <class T>
void sum_in_rank_order(MPI_Comm comm, int size, std::span<T> values, MPI_Datatype type) {
  const std::size_t n = values.size();
  std::vector<T> all(n * static_cast<std::size_t>(size));
  DEW_MPI(MPI_Allgather(values.data(), count_of(n), type, all.data(), count_of(n), type, comm));
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = all[i];
    for (std::size_t r = 1; r < static_cast<std::size_t>(size); ++r) values[i] += all[r * n + i];
  }
}

void reduce_exactly(MPI_Comm comm, std::span<std::int64_t> values, MPI_Op op) {
  DEW_MPI(MPI_Allreduce(MPI_IN_PLACE, values.data(), count_of(values.size()), MPI_INT64_T, op, comm));
}

}  // namespace

HostGroup::HostGroup(std::unique_ptr<State> state) : state_(std::move(state)) {}
HostGroup::HostGroup(HostGroup&&) noexcept = default;
HostGroup& HostGroup::operator=(HostGroup&&) noexcept = default;
HostGroup::~HostGroup() = default;

HostGroup HostGroup::alone() {
  return HostGroup(std::make_unique<State>());
}

HostGroup HostGroup::world() {
  return HostGroup(std::make_unique<State>(MPI_COMM_WORLD, false));
}

int HostGroup::rank() const {
  return state_->rank;
}
int HostGroup::size() const {
  return state_->size;
}

void HostGroup::sum(std::span<double> values) const {
  if (size() > 1) sum_in_rank_order(state_->comm, size(), values, MPI_DOUBLE);
}

void HostGroup::sum(std::span<std::int64_t> values) const {
  if (size() == 1) return;
  // Unsigned, so that an overflow wraps instead of being undefined.
  const std::span<std::uint64_t> words(reinterpret_cast<std::uint64_t*>(values.data()), values.size());
  sum_in_rank_order(state_->comm, size(), words, MPI_UINT64_T);
}

void HostGroup::max(std::span<std::int64_t> values) const {
  if (size() > 1) reduce_exactly(state_->comm, values, MPI_MAX);
}

void HostGroup::min(std::span<std::int64_t> values) const {
  if (size() > 1) reduce_exactly(state_->comm, values, MPI_MIN);
}

std::string HostGroup::broadcast(std::string text, int root) const {
  DEW_CHECK(0 <= root && root < size(), root, size());
  if (size() == 1) return text;
  int length = count_of(text.size());
  DEW_MPI(MPI_Bcast(&length, 1, MPI_INT, root, state_->comm));
  text.resize(static_cast<std::size_t>(length));
  DEW_MPI(MPI_Bcast(text.data(), length, MPI_CHAR, root, state_->comm));
  return text;
}

std::vector<std::string> HostGroup::gather(const std::string& text) const {
  if (size() == 1) return {text};
  const auto ranks = static_cast<std::size_t>(size());
  const int length = count_of(text.size());
  std::vector<int> lengths(ranks), offsets(ranks);
  DEW_MPI(MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, state_->comm));
  const auto total =
      std::accumulate(lengths.begin(), lengths.end(), std::size_t{0},
                      [](std::size_t sum, int n) { return sum + static_cast<std::size_t>(n); });
  DEW_CHECK(total <= static_cast<std::size_t>(INT_MAX), total);
  std::exclusive_scan(lengths.begin(), lengths.end(), offsets.begin(), 0);
  std::string joined(total, '\0');
  DEW_MPI(MPI_Allgatherv(text.data(), length, MPI_CHAR, joined.data(), lengths.data(), offsets.data(),
                         MPI_CHAR, state_->comm));
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < ranks; ++r) {
    texts.push_back(
        joined.substr(static_cast<std::size_t>(offsets[r]), static_cast<std::size_t>(lengths[r])));
  }
  return texts;
}

void HostGroup::barrier() const {
  if (size() > 1) DEW_MPI(MPI_Barrier(state_->comm));
}

HostGroup HostGroup::duplicate() const {
  if (state_->comm == MPI_COMM_NULL) return alone();
  MPI_Comm copy = MPI_COMM_NULL;
  DEW_MPI(MPI_Comm_dup(state_->comm, &copy));
  return HostGroup(std::make_unique<State>(copy, true));
}

HostGroup HostGroup::split(int colour, int key) const {
  if (state_->comm == MPI_COMM_NULL) return alone();
  DEW_CHECK(colour >= 0, colour);
  MPI_Comm part = MPI_COMM_NULL;
  DEW_MPI(MPI_Comm_split(state_->comm, colour, key, &part));
  return HostGroup(std::make_unique<State>(part, true));
}

HostGroup HostGroup::split_by_node() const {
  if (state_->comm == MPI_COMM_NULL) return alone();
  MPI_Comm part = MPI_COMM_NULL;
  DEW_MPI(MPI_Comm_split_type(state_->comm, MPI_COMM_TYPE_SHARED, rank(), MPI_INFO_NULL, &part));
  return HostGroup(std::make_unique<State>(part, true));
}

const void* HostGroup::native() const {
  return state_->comm == MPI_COMM_NULL ? nullptr : &state_->comm;
}

}  // namespace dew
