// Constants for HIP, where the HIP that is installed has no header for them: the names of hip/hip_math_constants.h.
#ifndef ROCMEND_HIP_MATH_CONSTANTS_H
#define ROCMEND_HIP_MATH_CONSTANTS_H

#warning rocmend stand-in: hip/hip_math_constants.h

#define HIP_INF_F __builtin_huge_valf()
#define HIP_NAN_F __builtin_nanf("")
#define HIP_MIN_DENORM_F 0x1p-149F
#define HIP_MAX_NORMAL_F 0x1.fffffep127F
#define HIP_NEG_ZERO_F (-0.0F)
#define HIP_ZERO_F 0.0F
#define HIP_ONE_F 1.0F
#define HIP_SQRT_HALF_F 0x1.6a09e6p-1F
#define HIP_SQRT_TWO_F 0x1.6a09e6p+0F
#define HIP_THIRD_F 0x1.555556p-2F
#define HIP_PIO4_F 0x1.921fb6p-1F
#define HIP_PIO2_F 0x1.921fb6p+0F
#define HIP_3PIO4_F 0x1.2d97c8p+1F
#define HIP_2_OVER_PI_F 0x1.45f306p-1F
#define HIP_PI_F 0x1.921fb6p+1F
#define HIP_L2E_F 0x1.715476p+0F
#define HIP_L2T_F 0x1.a934fp+1F
#define HIP_LG2_F 0x1.344136p-2F
#define HIP_LGE_F 0x1.bcb7b2p-2F
#define HIP_LN2_F 0x1.62e43p-1F
#define HIP_LNT_F 0x1.26bb1cp+1F
#define HIP_TWO_TO_23_F 0x1p23F
#define HIP_TWO_TO_24_F 0x1p24F
#define HIP_TWO_TO_31_F 0x1p31F
#define HIP_TWO_TO_32_F 0x1p32F

#define HIP_INF __builtin_huge_val()
#define HIP_NAN __builtin_nan("")
#define HIP_MIN_DENORM 0x1p-1074
#define HIP_NEG_ZERO (-0.0)
#define HIP_ZERO 0.0
#define HIP_ONE 1.0
#define HIP_SQRT_TWO 0x1.6a09e667f3bcdp+0
#define HIP_SQRT_HALF 0x1.6a09e667f3bcdp-1
#define HIP_THIRD 0x1.5555555555555p-2
#define HIP_PIO4 0x1.921fb54442d18p-1
#define HIP_PIO2 0x1.921fb54442d18p+0
#define HIP_3PIO4 0x1.2d97c7f3321d2p+1
#define HIP_2_OVER_PI 0x1.45f306dc9c883p-1
#define HIP_PI 0x1.921fb54442d18p+1
#define HIP_L2E 0x1.71547652b82fep+0
#define HIP_L2T 0x1.a934f0979a371p+1
#define HIP_LG2 0x1.34413509f79ffp-2
#define HIP_LGE 0x1.bcb7b1526e50ep-2
#define HIP_LN2 0x1.62e42fefa39efp-1
#define HIP_LNT 0x1.26bb1bbb55516p+1

#endif
