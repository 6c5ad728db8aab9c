/* Arithmetic that C does not have: half precision, conversions that saturate, minima with the ISA's NaN rules. */
#pragma once
#include "state.h"

/* IEEE 754 half to single: exact. */
static inline f32 as_f16(u32 h) {
  u32 sign = (h & 0x8000u) << 16, rest = h & 0x7fffu;
  if (rest >= 0x7c00u) return as_f32(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  f32 scaled = as_f32(rest << 13) * as_f32(0x77800000u); /* times 2^112: denormals come out exact */
  return as_f32(of_f32(scaled) | sign);
}

/* The same where a signaling NaN may become a quiet one. */
#if defined(__F16C__)
#include <immintrin.h>
static inline f32 as_f16_quiet(u32 h) { return _cvtsh_ss((u16)h); }
#else
static inline f32 as_f16_quiet(u32 h) { return as_f16(h); }
#endif

/* Double to half in one rounding to nearest even; single precision goes through it exactly. */
static inline u32 of_f16(f64 x) {
  u64 b = of_f64(x);
  u32 sign = (u32)(b >> 48) & 0x8000u;
  f64 a = fabs(x);
  if (a != a) return sign | 0x7e00u | (u32)(b >> 42 & 0x1ff);
  if (a >= 65520.0) return sign | 0x7c00u;
  if (a < 6.103515625e-05) return sign | (u32)(of_f64(a + 0x1p28) & 0xffff); /* denormal: spacing 2^-24 */
  u64 m = of_f64(a);
  m += 0x1ffffffffffull + (m >> 42 & 1);
  return sign | (u32)((m >> 42) - ((u64)(1023 - 15) << 10));
}
static inline u32 of_f16_toward_zero(f32 x) {
  u32 b = of_f32(x), sign = b >> 16 & 0x8000u;
  f32 a = fabsf(x);
  if (a != a) return sign | 0x7e00u | (b >> 13 & 0x1ff);
  if (isinf(a)) return sign | 0x7c00u;
  if (a >= 65504.0f) return sign | 0x7bffu;
  if (a < 6.103515625e-05f) return sign | (u32)(a * 0x1p24f);
  return sign | ((of_f32(a) >> 13) - (112u << 10));
}
static inline f32 as_bf16(u32 h) { return as_f32(h << 16); }
static inline u32 of_bf16(f32 x) {
  u32 b = of_f32(x);
  if (x != x) return b >> 16 | 0x40;
  return (b + 0x7fffu + (b >> 16 & 1)) >> 16;
}

static inline f32 quiet(f32 x) { return x != x ? as_f32(of_f32(x) | 0x400000u) : x; }
static inline int signaling(f32 x) { return x != x && !(of_f32(x) & 0x400000u); }
static inline f32 min_f32(f32 a, f32 b) {
  if (a != a) return signaling(a) ? quiet(a) : b != b ? quiet(b) : b;
  if (b != b) return signaling(b) ? quiet(b) : a;
  if (a == b) return signbit(a) ? a : b;
  return a < b ? a : b;
}
static inline f32 max_f32(f32 a, f32 b) {
  if (a != a) return signaling(a) ? quiet(a) : b != b ? quiet(b) : b;
  if (b != b) return signaling(b) ? quiet(b) : a;
  if (a == b) return signbit(a) ? b : a;
  return a > b ? a : b;
}
static inline f32 minimum_f32(f32 a, f32 b) { return a != a ? quiet(a) : b != b ? quiet(b) : min_f32(a, b); }
static inline f32 maximum_f32(f32 a, f32 b) { return a != a ? quiet(a) : b != b ? quiet(b) : max_f32(a, b); }
/* gfx12: a signaling NaN counts as a quiet one. */
static inline f32 min_num(f32 a, f32 b) { return a != a ? (b != b ? quiet(a) : b) : b != b ? a : min_f32(a, b); }
static inline f32 max_num(f32 a, f32 b) { return a != a ? (b != b ? quiet(a) : b) : b != b ? a : max_f32(a, b); }
static inline f64 quiet_f64(f64 x) { return x != x ? as_f64(of_f64(x) | 0x8000000000000ull) : x; }
static inline int signaling_f64(f64 x) { return x != x && !(of_f64(x) & 0x8000000000000ull); }
static inline f64 min_f64(f64 a, f64 b) {
  if (a != a) return signaling_f64(a) ? quiet_f64(a) : b != b ? quiet_f64(b) : b;
  if (b != b) return signaling_f64(b) ? quiet_f64(b) : a;
  if (a == b) return signbit(a) ? a : b;
  return a < b ? a : b;
}
static inline f64 max_f64(f64 a, f64 b) {
  if (a != a) return signaling_f64(a) ? quiet_f64(a) : b != b ? quiet_f64(b) : b;
  if (b != b) return signaling_f64(b) ? quiet_f64(b) : a;
  if (a == b) return signbit(a) ? b : a;
  return a > b ? a : b;
}
static inline f64 minimum_f64(f64 a, f64 b) { return a != a ? quiet_f64(a) : b != b ? quiet_f64(b) : min_f64(a, b); }
static inline f64 maximum_f64(f64 a, f64 b) { return a != a ? quiet_f64(a) : b != b ? quiet_f64(b) : max_f64(a, b); }
static inline f64 min_num_f64(f64 a, f64 b) { return a != a ? (b != b ? quiet_f64(a) : b) : b != b ? a : min_f64(a, b); }
static inline f64 max_num_f64(f64 a, f64 b) { return a != a ? (b != b ? quiet_f64(a) : b) : b != b ? a : max_f64(a, b); }
/* By the generation's rule for NaN. */
static inline f32 min_by(int generation, f32 a, f32 b) { return generation >= GFX12 ? min_num(a, b) : min_f32(a, b); }
static inline f32 max_by(int generation, f32 a, f32 b) { return generation >= GFX12 ? max_num(a, b) : max_f32(a, b); }
static inline f32 med3_by(int generation, f32 a, f32 b, f32 c) {
  if (a != a || b != b || c != c) return min_by(generation, min_by(generation, a, b), c);
  f32 top = max_f32(max_f32(a, b), c); /* the larger of those that are left without the largest: zeros of either sign are equal */
  return top == a ? max_f32(b, c) : top == b ? max_f32(a, c) : max_f32(a, b);
}
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MED3(a, b, c) MAX(MIN(a, b), MIN(MAX(a, b), c))

static inline i32 to_i32(f64 x) { return x != x ? 0 : x <= -2147483648.0 ? INT32_MIN : x >= 2147483647.0 ? INT32_MAX : (i32)x; }
static inline u32 to_u32(f64 x) { return x != x || x <= 0 ? 0 : x >= 4294967295.0 ? UINT32_MAX : (u32)x; }
static inline i32 to_i16(f32 x) { return x != x ? 0 : x <= -32768.0f ? -32768 : x >= 32767.0f ? 32767 : (i32)x; }
static inline u32 to_u16(f32 x) { return x != x || x <= 0 ? 0 : x >= 65535.0f ? 65535 : (u32)x; }
static inline u32 to_u8(f32 x) { return x != x || x <= 0 ? 0 : x >= 255.0f ? 255 : (u32)x; }
static inline i32 saturate(i64 x, i64 low, i64 high) { return (i32)(x < low ? low : x > high ? high : x); }
static inline u32 usaturate16(u64 x) { return x > 65535 ? 65535 : (u32)x; }
static inline u32 to_snorm(f32 x) { return x != x ? 0 : (u32)to_i16(nearbyintf(MIN(MAX(x, -1.0f), 1.0f) * 32767.0f)) & 0xffff; }
static inline u32 to_unorm(f32 x) { return x != x ? 0 : to_u16(nearbyintf(MIN(MAX(x, 0.0f), 1.0f) * 65535.0f)); }
static inline int cube_face(f32 x, f32 y, f32 z) { x = fabsf(x); y = fabsf(y); z = fabsf(z); return z >= x && z >= y ? 2 : y >= x; }
static inline u32 usaturate(i64 x) { return x < 0 ? 0 : x > 0xffffffffll ? 0xffffffffu : (u32)x; }

static inline f32 flushed(f32 x) { return (of_f32(x) & 0x7f800000u) ? x : as_f32(of_f32(x) & 0x80000000u); }
/* Transcendental units work without denormals of single precision; one unit in the last place is allowed. */
static inline f32 exp2_unit(f32 x) { return flushed((f32)exp2(flushed(x))); }
static inline f32 log2_unit(f32 x) { x = flushed(x); return (f32)log2(x); }
static inline f32 rcp_unit(f32 x) { return flushed(1.0f / flushed(x)); }
static inline f32 rsq_unit(f32 x) { x = flushed(x); return (f32)(1.0 / sqrt((f64)x)); }
static inline f32 sqrt_unit(f32 x) { return sqrtf(flushed(x)); }
static inline f32 sin_unit(f32 x) { return isinf(x) || x != x ? as_f32(0x7fc00000) : fabsf(x) > 256.0f * 256.0f * 256.0f ? 0 : (f32)sin((x - floor((f64)x)) * 6.283185307179586476925); }
static inline f32 cos_unit(f32 x) { return isinf(x) || x != x ? as_f32(0x7fc00000) : fabsf(x) > 256.0f * 256.0f * 256.0f ? 1 : (f32)cos((x - floor((f64)x)) * 6.283185307179586476925); }
static inline f32 fract_f32(f32 x) { f32 r = x - floorf(x); return x != x ? quiet(x) : isinf(x) ? as_f32(0x7fc00000) : MIN(r, as_f32(0x3f7fffffu)); }
static inline f32 fract_f16(f32 x) { f32 r = x - floorf(x); return x != x ? quiet(x) : isinf(x) ? as_f32(0x7fc00000) : MIN(r, as_f16(0x3bff)); }
static inline f64 fract_f64(f64 x) { f64 r = x - floor(x); return x != x || isinf(x) ? NAN : MIN(r, as_f64(0x3fefffffffffffffull)); }
static inline i32 frexp_exp(f64 x) { int e = 0; if (x == 0 || isinf(x) || x != x) return 0; (void)frexp(x, &e); return e; }
static inline f64 frexp_mant(f64 x) { int e; return x == 0 || isinf(x) || x != x ? x : frexp(x, &e); }

static inline int classed(u32 sign, int zero, int denormal, int infinite, int nan, int quiet_nan, u32 wanted) {
  u32 bit = nan ? (quiet_nan ? 1 : 0) : infinite ? (sign ? 2 : 9) : zero ? (sign ? 5 : 6) : denormal ? (sign ? 4 : 7) : sign ? 3 : 8;
  return wanted >> bit & 1;
}
static inline int class_f32(u32 x, u32 wanted) {
  u32 e = x >> 23 & 255, m = x & 0x7fffff;
  return classed(x >> 31, !e && !m, !e && m, e == 255 && !m, e == 255 && m, m >> 22, wanted);
}
static inline int class_f16(u32 x, u32 wanted) {
  u32 e = x >> 10 & 31, m = x & 0x3ff;
  return classed(x >> 15 & 1, !e && !m, !e && m, e == 31 && !m, e == 31 && m, m >> 9, wanted);
}
static inline int class_f64(u64 x, u32 wanted) {
  u64 e = x >> 52 & 2047, m = x & 0xfffffffffffffull;
  return classed(x >> 63, !e && !m, !e && m, e == 2047 && !m, e == 2047 && m, (int)(m >> 51), wanted);
}

/* Division: the three helpers of the ISA's sequence. */
static inline f32 div_fixup_f32(f32 q, f32 d, f32 n) {
  u32 sign = (of_f32(d) ^ of_f32(n)) & 0x80000000u;
  if (n != n) return quiet(n);
  if (d != d) return quiet(d);
  if ((n == 0 && d == 0) || (isinf(n) && isinf(d))) return as_f32(0xffc00000u);
  if (d == 0 || isinf(n)) return as_f32(sign | 0x7f800000u);
  if (isinf(d) || n == 0) return as_f32(sign);
  int en = (int)(of_f32(n) >> 23 & 255), ed = (int)(of_f32(d) >> 23 & 255);
  if (en - ed < -150) return as_f32(sign | 1) * 0.5f;
  if (ed == 255 || q != q) return as_f32(sign | 0x7f800000u); /* no number: the quotient overflowed on the way */
  return as_f32((of_f32(q) & 0x7fffffffu) | sign);
}
static inline f64 div_fixup_f64(f64 q, f64 d, f64 n) {
  u64 sign = (of_f64(d) ^ of_f64(n)) & 0x8000000000000000ull;
  if (n != n || d != d) return n != n ? n : d;
  if ((n == 0 && d == 0) || (isinf(n) && isinf(d))) return as_f64(0xfff8000000000000ull);
  if (d == 0 || isinf(n)) return as_f64(sign | 0x7ff0000000000000ull);
  if (isinf(d) || n == 0) return as_f64(sign);
  int en = (int)(of_f64(n) >> 52 & 2047), ed = (int)(of_f64(d) >> 52 & 2047);
  if (en - ed < -1075) return as_f64(sign | 1) * 0.5;
  if (q != q) return as_f64(sign | 0x7ff0000000000000ull);
  return as_f64((of_f64(q) & 0x7fffffffffffffffull) | sign);
}
static inline u32 div_fixup_f16(u32 q, u32 d, u32 n) {
  u32 sign = (d ^ n) & 0x8000u;
  f32 df = as_f16(d), nf = as_f16(n);
  if (nf != nf) return n | 0x200;
  if (df != df) return d | 0x200;
  if ((nf == 0 && df == 0) || (isinf(nf) && isinf(df))) return 0xfe00;
  if (df == 0 || isinf(nf)) return sign | 0x7c00;
  if (isinf(df) || nf == 0) return sign;
  return (q & 0x7fff) | sign;
}
static inline f32 div_scale_f32(f32 s0, f32 d, f32 n, int *scaled) {
  int en = (int)(of_f32(n) >> 23 & 255), ed = (int)(of_f32(d) >> 23 & 255);
  *scaled = 0;
  if (n == 0 || d == 0) return NAN;
  if (en - ed >= 96) { *scaled = 1; return of_f32(s0) == of_f32(d) ? ldexpf(s0, 64) : s0; }
  if (ed == 0) return ldexpf(s0, 64);
  f64 reciprocal = 1.0 / (f64)d, quotient = (f64)n / (f64)d;
  /* Down: the documents say up, which overflows; only down makes the sequence divide rightly. */
  if (fabs(reciprocal) < 0x1p-126 && fabs(quotient) < 0x1p-126) { *scaled = 1; return of_f32(s0) == of_f32(d) ? ldexpf(s0, -64) : s0; }
  if (fabs(reciprocal) < 0x1p-126) return ldexpf(s0, -64);
  if (fabs(quotient) < 0x1p-126) { *scaled = 1; return of_f32(s0) == of_f32(n) ? ldexpf(s0, 64) : s0; }
  if (en <= 23) return ldexpf(s0, 64);
  return s0;
}
static inline f64 div_scale_f64(f64 s0, f64 d, f64 n, int *scaled) {
  int en = (int)(of_f64(n) >> 52 & 2047), ed = (int)(of_f64(d) >> 52 & 2047);
  *scaled = 0;
  if (n == 0 || d == 0) return NAN;
  if (en - ed >= 768) { *scaled = 1; return of_f64(s0) == of_f64(d) ? ldexp(s0, 128) : s0; }
  if (ed == 0) return ldexp(s0, 128);
  int tiny_reciprocal = ed > 2044, tiny_quotient = en - ed < -1021;
  if (tiny_reciprocal && tiny_quotient) { *scaled = 1; return of_f64(s0) == of_f64(d) ? ldexp(s0, -128) : s0; }
  if (tiny_reciprocal) return ldexp(s0, -128);
  if (tiny_quotient) { *scaled = 1; return of_f64(s0) == of_f64(n) ? ldexp(s0, 128) : s0; }
  if (en <= 53) return ldexp(s0, 128);
  return s0;
}
/* Scales the quotient back: up where the numerator was scaled down relative to it. It is rounded once. */
#ifdef __SIZEOF_FLOAT128__
typedef __float128 Wide;
#else
typedef long double Wide;
#endif
static inline f32 div_fmas_f32(f32 a, f32 b, f32 c, int scaled) {
  f32 r = fmaf(a, b, c);
  return !scaled || r != r || isinf(r) ? r : (f32)(((Wide)a * b + c) * ((of_f32(c) >> 23 & 255) > 127 ? 0x1p64 : 0x1p-64));
}
static inline f64 div_fmas_f64(f64 a, f64 b, f64 c, int scaled) {
  f64 r = fma(a, b, c);
  return !scaled || r != r || isinf(r) ? r : (f64)(((Wide)a * b + c) * ((of_f64(c) >> 52 & 2047) > 1023 ? 0x1p128 : 0x1p-128));
}

static inline u32 bits(u32 x, u32 offset, u32 width) { offset &= 31; width &= 31; return width ? x >> offset & ((1u << width) - 1) : 0; }
static inline i32 sbits(u32 x, u32 offset, u32 width) {
  offset &= 31; width &= 31;
  if (!width) return 0;
  u32 r = (u32)((i32)x >> offset) & ((1u << width) - 1), top = 1u << (width - 1);
  return (i32)((r ^ top) - top);
}
static inline u64 bits64(u64 x, u32 offset, u32 width) { offset &= 63; width &= 127; return !width ? 0 : width >= 64 ? x >> offset : x >> offset & ((1ull << width) - 1); }
static inline i64 sbits64(u64 x, u32 offset, u32 width) {
  offset &= 63; width &= 127;
  if (!width) return 0;
  u64 r = (u64)((i64)x >> offset);
  if (width >= 64) return (i64)r;
  r &= (1ull << width) - 1;
  u64 top = 1ull << (width - 1);
  return (i64)((r ^ top) - top);
}
static inline u32 bfe32(u32 x, u32 field) { return bits64(x, field & 31, field >> 16 & 127) & 0xffffffffu; }
static inline i32 sbfe32(u32 x, u32 field) { u32 width = field >> 16 & 127; return width >= 32 ? (i32)x >> (field & 31) : (i32)sbits64((u64)(i64)(i32)x, field & 31, width); }
static inline u32 put_half(u32 old, u32 half, u32 modifiers) { return modifiers & HIGH ? (old & 0xffff) | half << 16 : (old & 0xffff0000u) | half; }
static inline u32 permuted(u32 a, u32 b, u32 sel) {
  u64 both = (u64)a << 32 | b;
  u32 r = 0;
  for (int i = 0; i < 4; i++) {
    u32 s = sel >> (8 * i) & 255, byte;
    if (s >= 13) byte = 255;
    else if (s == 12) byte = 0;
    else if (s >= 8) byte = (both >> (s == 8 ? 15 : s == 9 ? 31 : s == 10 ? 47 : 63) & 1) ? 255 : 0;
    else byte = (u32)(both >> (8 * s)) & 255;
    r |= byte << (8 * i);
  }
  return r;
}
static inline u32 reversed(u32 x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(x);
}
static inline i32 first_high(u32 x) { return x ? __builtin_clz(x) : -1; }
static inline i32 first_low(u32 x) { return x ? __builtin_ctz(x) : -1; }
static inline i32 first_sign(i32 x) { return x == 0 || x == -1 ? -1 : __builtin_clz((u32)(x < 0 ? ~x : x)); }
static inline i32 dot4(u32 a, u32 b, int signed_a, int signed_b) {
  i32 r = 0;
  for (int i = 0; i < 4; i++) {
    i32 x = signed_a ? (i8)(a >> 8 * i) : (i32)(a >> 8 * i & 255), y = signed_b ? (i8)(b >> 8 * i) : (i32)(b >> 8 * i & 255);
    r += x * y;
  }
  return r;
}
static inline i32 dot8(u32 a, u32 b, int signed_a, int signed_b) {
  i32 r = 0;
  for (int i = 0; i < 8; i++) {
    i32 x = (i32)(a >> 4 * i & 15), y = (i32)(b >> 4 * i & 15);
    if (signed_a) x = (x ^ 8) - 8;
    if (signed_b) y = (y ^ 8) - 8;
    r += x * y;
  }
  return r;
}
/* 8-bit floats. OCP: e4m3fn and e5m2; FNUZ (gfx940 and gfx942): no infinities, no minus zero, bias one more. */
static inline f32 as_fp8(u32 x, int mantissa, int fnuz) {
  u32 sign = x >> 7 & 1, e = x >> mantissa & ((1u << (7 - mantissa)) - 1), m = x & ((1u << mantissa) - 1), top = (1u << (7 - mantissa)) - 1;
  int bias = (mantissa == 3 ? 7 : 15) + fnuz;
  f32 r;
  if (fnuz && (x & 255) == 0x80) return NAN;
  if (!fnuz && mantissa == 3 && e == top && m == 7) return as_f32(0x7fc00000u | sign << 31);
  if (!fnuz && mantissa == 2 && e == top) return m ? as_f32(0x7fc00000u | sign << 31) : sign ? -INFINITY : INFINITY;
  r = e ? ldexpf(1.0f + (f32)m / (f32)(1 << mantissa), (int)e - bias) : ldexpf((f32)m / (f32)(1 << mantissa), 1 - bias);
  return sign ? -r : r;
}
static inline u32 of_fp8(f32 x, int mantissa, int fnuz) {
  u32 sign = of_f32(x) >> 31 << 7;
  int bias = (mantissa == 3 ? 7 : 15) + fnuz;
  u32 nan = fnuz ? 0x80 : mantissa == 3 ? 0x7f | sign : 0x7e | sign;
  f32 largest = mantissa == 3 ? (fnuz ? 240.0f : 448.0f) : 57344.0f;
  if (x != x) return nan;
  f32 a = fabsf(x);
  if (isinf(a)) return fnuz || mantissa == 3 ? nan : sign | 0x7c;
  int e;
  (void)frexpf(a, &e);
  if (a == 0) return fnuz ? 0 : sign;
  int scale = MAX(e - 1, 1 - bias) - mantissa;
  f32 rounded = nearbyintf(ldexpf(a, -scale));
  f32 back = ldexpf(rounded, scale);
  if (back > largest) return fnuz || mantissa == 3 ? nan : sign | 0x7c; /* it rounds and does not saturate */
  if (rounded == 0) return fnuz ? 0 : sign;
  (void)frexpf(back, &e);
  if (e - 1 < 1 - bias) return sign | (u32)rounded;
  return sign | (u32)(e - 1 + bias) << mantissa | ((u32)ldexpf(back, mantissa - (e - 1)) & ((1u << mantissa) - 1));
}
static inline f32 dot4_fp8(u32 a, u32 b, f32 c, int mantissa_a, int mantissa_b) {
  f64 sum = c;
  for (int i = 0; i < 32; i += 8) sum += (f64)as_fp8(a >> i & 255, mantissa_a, 0) * as_fp8(b >> i & 255, mantissa_b, 0);
  return (f32)sum;
}
