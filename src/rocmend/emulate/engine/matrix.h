/* Matrix instructions: MFMA of CDNA and WMMA of RDNA, by what each lane and register holds. */
#pragma once
#include "memory.h"

/* Element types of A and B; the accumulator is f32 unless WIDE says otherwise. */
enum { E_F32, E_F16, E_BF16, E_I8, E_FP8, E_BF8, E_F64, E_IU8, E_IU4 };
/* Accumulators. */
enum { ACC_F32, ACC_I32, ACC_F64, ACC_F16, ACC_BF16 };

typedef struct { u8 m, n, k, blocks, a, b, acc, wmma, fnuz, generation; } Shape;
extern const Shape shapes[];

static u32 element_bits(u32 e) { return e == E_F32 ? 32 : e == E_F64 ? 64 : e == E_F16 || e == E_BF16 ? 16 : e == E_IU4 ? 4 : 8; }

/* Bits `at` and up of what a lane holds in consecutive registers. */
static u64 element(Wave *w, const Operand *o, u32 lane, u32 at, u32 size, u32 *unwritten) {
  if (o->kind != VGPR) return size == 64 ? o->value : (u32)o->value >> (at % 32) & (size == 32 ? ~0u : (1u << size) - 1);
  u32 k = o->index + at / 32, n = w->lanes;
  u64 x = w->v[(size_t)k * n + lane];
  if (w->lanes_v[k] >> lane & 1) *unwritten |= unwritten_row(w, k)[lane] >> (at % 32) & (size >= 32 ? ~0u : (1u << size) - 1) ? 1 : 0;
  if (size == 64) return x | (u64)w->v[(size_t)(k + 1) * n + lane] << 32;
  return size == 32 ? x : x >> (at % 32) & ((1u << size) - 1);
}
static f64 number(u64 x, u32 e, u32 fnuz, int negate, int is_signed) {
  f64 r;
  switch (e) {
    case E_F32: r = as_f32((u32)x); break;
    case E_F64: r = as_f64(x); break;
    case E_F16: r = as_f16((u32)x); break;
    case E_BF16: r = as_bf16((u32)x); break;
    case E_FP8: r = as_fp8((u32)x, 3, (int)fnuz); break;
    case E_BF8: r = as_fp8((u32)x, 2, (int)fnuz); break;
    case E_I8: return (i8)x;
    case E_IU8: return is_signed ? (f64)(i8)x : (f64)(u8)x;
    default: return is_signed ? (f64)(((i32)x ^ 8) - 8) : (f64)x;
  }
  return negate ? -r : r;
}

/* Where element (row, k) of A, or (column, k) of B, lies: lane, and bit in its registers. */
static void place_of(const Shape *s, u32 lanes, u32 rows, u32 outer, u32 k, u32 block, u32 size, u32 *lane, u32 *bit) {
  if (!s->wmma) { /* lanes go over rows and then over groups of k; blocks come between for the small shapes */
    u32 groups = lanes / (rows * s->blocks), each = s->k / groups;
    if (!each) each = 1;
    u32 group = k / each;
    *lane = outer + rows * (s->blocks > 1 ? block + s->blocks * group : group);
    *bit = k % each * size;
    return;
  }
  if (s->generation < GFX12) { /* both halves of the wave hold the same 16 rows */
    *lane = outer;
    *bit = k * size;
    return;
  }
  u32 halves = lanes / 16, each = s->k / halves; /* gfx12: each 16 lanes hold a part of k, eight at a time */
  u32 chunk = size == 16 ? 8 : size == 8 ? 8 : 8;
  if (each < chunk) chunk = each;
  u32 group = k / chunk % halves, at = k / (chunk * halves) * chunk + k % chunk;
  *lane = outer + 16 * group;
  *bit = at * size;
}

static void run_matrix(Wave *w, const Inst *i) {
  const Shape *s = &shapes[i->op];
  u32 n = w->lanes, M = s->m, N = s->n, K = s->k, an = element_bits(s->a), bn = element_bits(s->b);
  static _Thread_local f64 A[64 * 256], B[64 * 256];
  static _Thread_local u8 UA[64], UB[64];
  static _Thread_local u32 D[64 * 64], DU[64 * 64];
  const Operand *oa = &i->s[0], *ob = &i->s[1], *oc = &i->s[2];
  if (anything_pending(w)) use_operands(w, i);
  int integer = s->acc == ACC_I32;
  u32 words = i->d.dwords, per = s->acc == ACC_F64 ? 2 : 1;
  memset(DU, 0, words * n * 4);
  int any_unwritten = 0;
  for (u32 block = 0; block < s->blocks; block++) {
    for (u32 r = 0; r < M; r++) {
      u32 u = 0;
      for (u32 k = 0; k < K; k++) {
        u32 lane, bit;
        place_of(s, n, M, r, k, block, an, &lane, &bit);
        int neg = !integer && (k & 1 && an < 32 && s->wmma ? oa->modifiers & NEG_HIGH : oa->modifiers & NEG) != 0;
        A[r * K + k] = number(element(w, oa, lane, bit, an, &u), s->a, s->fnuz, neg, (oa->modifiers & NEG) != 0);
      }
      UA[r] = (u8)u;
    }
    for (u32 c = 0; c < N; c++) {
      u32 u = 0;
      for (u32 k = 0; k < K; k++) {
        u32 lane, bit;
        place_of(s, n, N, c, k, block, bn, &lane, &bit);
        int neg = !integer && (k & 1 && bn < 32 && s->wmma ? ob->modifiers & NEG_HIGH : ob->modifiers & NEG) != 0;
        B[c * K + k] = number(element(w, ob, lane, bit, bn, &u), s->b, s->fnuz, neg, (ob->modifiers & NEG) != 0);
      }
      UB[c] = (u8)u;
    }
    for (u32 r = 0; r < M; r++)
      for (u32 c = 0; c < N; c++) {
        u32 lane, reg, bit = 0, u = 0;
        if (!s->wmma) {
          if (s->acc == ACC_F64) { lane = c + N * (r % (n / N)); reg = 2 * (r / (n / N)); if (M == 4) { lane = c + 4 * (s->blocks > 1 ? block + 4 * r : r); reg = 0; } }
          else if (M == 4) { lane = c + N * block; reg = r; }
          else {
            u32 groups = n / N, chunk = 4; /* four rows a lane, then the next group of lanes */
            lane = c + N * (r / chunk % groups);
            reg = r / (chunk * groups) * chunk + r % chunk + block * (M * N / n);
          }
        } else if (s->generation < GFX12) { /* even and odd rows in the two halves of 32 lanes, or four rows over 64 */
          u32 groups = n / 16;
          lane = c + 16 * (r % groups);
          reg = r / groups;
          if (s->acc == ACC_F16 || s->acc == ACC_BF16) bit = i->flags & D16_HIGH ? 16 : 0;
        } else {
          u32 groups = n / 16, each = 16 / groups;
          lane = c + 16 * (r / each);
          reg = r % each;
          if (s->acc == ACC_F16 || s->acc == ACC_BF16) { bit = reg % 2 * 16; reg /= 2; }
        }
        u64 cbits;
        u32 csize = s->acc == ACC_F64 ? 64 : s->acc == ACC_F16 || s->acc == ACC_BF16 ? 16 : 32;
        cbits = element(w, oc, lane, reg * 32 + bit, csize, &u);
        u |= UA[r] | UB[c];
        any_unwritten |= (int)u;
        u64 out;
        if (integer) {
          i64 sum = (i32)cbits;
          for (u32 k = 0; k < K; k++) sum += (i64)A[r * K + k] * (i64)B[c * K + k];
          out = (u32)(i->flags & CLAMP ? (i64)saturate(sum, INT32_MIN, INT32_MAX) : sum);
        } else if (s->acc == ACC_F64) {
          f64 sum = as_f64(cbits);
          for (u32 k = 0; k < K; k++) sum = fma(A[r * K + k], B[c * K + k], sum);
          out = of_f64(sum);
        } else {
          f64 start = csize == 32 ? as_f32((u32)cbits) : s->acc == ACC_F16 ? as_f16((u32)cbits) : as_bf16((u32)cbits);
          if (oc->modifiers & ABS) start = fabs(start);
          if (oc->modifiers & NEG) start = -start;
          f64 sum = 0; /* summed in double precision: hardware's order of single precision is not documented */
          for (u32 k = 0; k < K; k++) sum += A[r * K + k] * B[c * K + k];
          sum += start;
          out = csize == 32 ? of_f32((f32)sum) : s->acc == ACC_F16 ? of_f16(sum) : of_bf16((f32)sum);
        }
        if (csize == 64) { D[reg * n + lane] = (u32)out; D[(reg + 1) * n + lane] = (u32)(out >> 32); DU[reg * n + lane] = DU[(reg + 1) * n + lane] = u ? ~0u : 0; }
        else if (csize == 32) { D[reg * n + lane] = (u32)out; DU[reg * n + lane] = u ? ~0u : 0; }
        else {
          u32 keep = 0xffffu << (16 - bit);
          u32 before = s->generation < GFX12 && oc->kind == VGPR ? row(w, oc->index + reg)[lane] : bit ? D[reg * n + lane] : 0;
          D[reg * n + lane] = (before & keep) | (u32)out << bit;
          if (u) DU[reg * n + lane] |= 0xffffu << bit;
        }
      }
  }
  (void)per;
  u64 exec = s->wmma ? all_lanes(w) : all_lanes(w);
  for (u32 k = 0; k < words; k++) {
    commit_row(w, i->d.index + k, D + k * n, exec);
    mark_row(w, i->d.index + k, any_unwritten ? DU + k * n : 0, exec);
  }
}
