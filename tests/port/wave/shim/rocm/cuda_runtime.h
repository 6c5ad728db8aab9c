// What the compatibility header of a port brings in the place of CUDA's.
#pragma once
#include <hip/hip_runtime.h>
#include "warp32.h"
