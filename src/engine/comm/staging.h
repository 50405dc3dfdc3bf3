// Collectives on memory that hosts cannot read: what a rank gives is copied to the host first, what it gets is copied
// back at the end.
#pragma once

#include <functional>
#include <memory>

#include "comm/communicator.h"

namespace teratron {

// Begins a collective on host copies of the views.
std::unique_ptr<Pending::Work> start_staged(
    Allocator& memory, const CollectiveViews& views,
    const std::function<std::unique_ptr<Pending::Work>(const CollectiveViews&)>& begin);

}  // namespace teratron
