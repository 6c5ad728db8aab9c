// thrust::pair, where rocThrust is not installed: the standard library's, whose functions are constexpr and so device
// code too.
#ifndef ROCMEND_THRUST_PAIR_H
#define ROCMEND_THRUST_PAIR_H

#warning rocmend stand-in: thrust/pair.h

#include <utility>

namespace thrust {
using std::get;
using std::make_pair;
using std::pair;
using std::swap;
}  // namespace thrust

#endif
