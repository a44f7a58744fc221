#include "comm/mpi_transport.h"

#include <mpi.h>

#include <algorithm>
#include <climits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "comm/mpi_check.h"

namespace dew {

struct MpiRequests::State {
  std::vector<MPI_Request> requests;
  std::vector<MPI_Datatype> types;  // of the collectives in flight

  MPI_Request* add() { return &requests.emplace_back(MPI_REQUEST_NULL); }
};

namespace {

MPI_Comm comm_of(const HostGroup& group) {
  return *static_cast<const MPI_Comm*>(group.native());
}

// `length` bytes of every block of `block` bytes: the extent, which MPI keeps in 64 bits, carries the
// distance.
MPI_Datatype piece_type(std::int64_t length, std::int64_t block) {
  MPI_Datatype bytes = MPI_DATATYPE_NULL, piece = MPI_DATATYPE_NULL;
  DEW_MPI(MPI_Type_contiguous(static_cast<int>(length), MPI_BYTE, &bytes));
  DEW_MPI(MPI_Type_create_resized(bytes, 0, static_cast<MPI_Aint>(block), &piece));
  DEW_MPI(MPI_Type_commit(&piece));
  DEW_MPI(MPI_Type_free(&bytes));
  return piece;
}

// Calls f(offset, length) for pieces of at most `limit` bytes.
template <class F>
void for_pieces(std::int64_t bytes, std::int64_t limit, F&& f) {
  for (std::int64_t at = 0; at < bytes; at += limit) f(at, std::min(limit, bytes - at));
}

}  // namespace

MpiRequests::MpiRequests() : state_(std::make_unique<State>()) {}
MpiRequests::~MpiRequests() = default;

bool MpiRequests::test() {
  if (state_->requests.empty()) return true;
  int done = 0;
  DEW_MPI(MPI_Testall(static_cast<int>(state_->requests.size()), state_->requests.data(), &done,
                      MPI_STATUSES_IGNORE));
  if (done == 0) return false;
  state_->requests.clear();
  for (MPI_Datatype& type : state_->types) DEW_MPI(MPI_Type_free(&type));
  state_->types.clear();
  return true;
}

MpiTransport::MpiTransport(HostGroup group, std::int64_t message_limit)
    : group_(std::move(group)), limit_(message_limit) {
  DEW_CHECK(group_.native() != nullptr);
  DEW_CHECK(1 <= limit_ && limit_ <= INT_MAX, limit_);
}

void MpiTransport::all_gather(const void* send, void* recv, std::int64_t bytes, MpiRequests& requests) const {
  const std::int64_t piece = std::max<std::int64_t>(1, limit_ / group_.size());
  auto* state = requests.state_.get();
  if (bytes <= piece) {
    const int count = static_cast<int>(bytes);
    DEW_MPI(MPI_Iallgather(send == nullptr ? MPI_IN_PLACE : send, count, MPI_BYTE, recv, count, MPI_BYTE,
                           comm_of(group_), state->add()));
    return;
  }
  for_pieces(bytes, piece, [&](std::int64_t at, std::int64_t length) {
    const MPI_Datatype type = state->types.emplace_back(piece_type(length, bytes));
    const void* from = send == nullptr ? MPI_IN_PLACE : static_cast<const char*>(send) + at;
    DEW_MPI(MPI_Iallgather(from, static_cast<int>(length), MPI_BYTE, static_cast<char*>(recv) + at, 1, type,
                           comm_of(group_), state->add()));
  });
}

void MpiTransport::all_to_all(const void* send, void* recv, std::int64_t bytes, MpiRequests& requests) const {
  const std::int64_t piece = std::max<std::int64_t>(1, limit_ / group_.size());
  auto* state = requests.state_.get();
  if (bytes <= piece) {
    const int count = static_cast<int>(bytes);
    DEW_MPI(MPI_Ialltoall(send, count, MPI_BYTE, recv, count, MPI_BYTE, comm_of(group_), state->add()));
    return;
  }
  for_pieces(bytes, piece, [&](std::int64_t at, std::int64_t length) {
    const MPI_Datatype type = state->types.emplace_back(piece_type(length, bytes));
    DEW_MPI(MPI_Ialltoall(static_cast<const char*>(send) + at, 1, type, static_cast<char*>(recv) + at, 1,
                          type, comm_of(group_), state->add()));
  });
}

void MpiTransport::broadcast(void* block, std::int64_t bytes, int root, MpiRequests& requests) const {
  for_pieces(bytes, limit_, [&](std::int64_t at, std::int64_t length) {
    DEW_MPI(MPI_Ibcast(static_cast<char*>(block) + at, static_cast<int>(length), MPI_BYTE, root,
                       comm_of(group_), requests.state_->add()));
  });
}

void MpiTransport::send(const void* block, std::int64_t bytes, int peer, int tag,
                        MpiRequests& requests) const {
  for_pieces(bytes, limit_, [&](std::int64_t at, std::int64_t length) {
    DEW_MPI(MPI_Isend(static_cast<const char*>(block) + at, static_cast<int>(length), MPI_BYTE, peer, tag,
                      comm_of(group_), requests.state_->add()));
  });
}

void MpiTransport::recv(void* block, std::int64_t bytes, int peer, int tag, MpiRequests& requests) const {
  for_pieces(bytes, limit_, [&](std::int64_t at, std::int64_t length) {
    DEW_MPI(MPI_Irecv(static_cast<char*>(block) + at, static_cast<int>(length), MPI_BYTE, peer, tag,
                      comm_of(group_), requests.state_->add()));
  });
}

}  // namespace dew
