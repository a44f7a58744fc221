// Recomputation: run now, keep the inputs, run again in the backward.
#pragma once

#include <functional>
#include <string_view>

#include "autograd/scope.h"

namespace dew {

using Body = std::function<Vars(Scope&, const Vars&)>;

/// Runs `body` on `in`. When the policy drops `site`, only `in` stays alive, and the backward runs the body
/// again on a tape of its own, then differentiates it; its weight gradients are formed at once, never
/// deferred. The second run repeats the first one exactly: a body depends on its inputs, bound parameters and
/// captured values alone. Bodies capture by value.
Vars remat(Scope& scope, std::string_view site, const Vars& in, const Body& body);

}  // namespace dew
