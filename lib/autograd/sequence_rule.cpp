#include "autograd/sequence_rule.h"

namespace dew {

std::string_view name_of(SequenceExchange exchange) {
  switch (exchange) {
    case SequenceExchange::kAllToAll:
      return "all_to_all";
    case SequenceExchange::kGather:
      return "gather";
    case SequenceExchange::kBand:
      return "band";
    case SequenceExchange::kRing:
      return "ring";
  }
  return "";
}

}  // namespace dew
