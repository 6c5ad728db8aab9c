// thrust::tuple, where rocThrust is not installed: the standard library's, whose functions are constexpr and so device
// code too.
#ifndef ROCMEND_THRUST_TUPLE_H
#define ROCMEND_THRUST_TUPLE_H

#warning rocmend stand-in: thrust/tuple.h

#include <thrust/pair.h>

#include <tuple>

namespace thrust {
using std::get;
using std::ignore;
using std::make_tuple;
using std::tie;
using std::tuple;
using std::tuple_element;
using std::tuple_size;
}  // namespace thrust

#endif
