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

/* Where each element of A, B and D lies: lane, bit in its registers. Made once for each shape and wave size. */
typedef struct { u8 lane; u16 bit; } Spot;
typedef struct { Spot *a, *b, *d; } Layout;
static Layout layouts[512][2];

static Spot spot_of_result(const Shape *s, u32 n, u32 r, u32 c, u32 block) {
  u32 M = s->m, N = s->n, groups, lane, reg, bit = 0, half = s->acc == ACC_F16 || s->acc == ACC_BF16;
  if (s->wmma && s->generation < GFX12) { /* neighbouring rows in the groups of 16 lanes */
    groups = n / 16;
    lane = c + 16 * (r % groups);
    reg = r / groups;
  } else if (s->wmma) { /* each group of 16 lanes holds a part of the rows, halves packed */
    groups = n / 16;
    u32 each = 16 / groups;
    lane = c + 16 * (r / each);
    reg = half ? r % each / 2 : r % each;
    bit = half ? r % each % 2 * 16 : 0;
  } else if (M == 4) {
    lane = s->acc == ACC_F64 ? c + 4 * (block + 4 * r) : c + 4 * block;
    reg = s->acc == ACC_F64 ? 0 : r;
  } else if (s->acc == ACC_F64) {
    lane = c + N * (r % (n / N));
    reg = 2 * (r / (n / N));
  } else { /* four rows a lane, then the next group of lanes */
    groups = n / N;
    lane = c + N * (r / 4 % groups);
    reg = r / (4 * groups) * 4 + r % 4 + block * (M * N / n);
  }
  return (Spot){(u8)lane, (u16)(reg * 32 + bit)};
}
static const Layout *layout_of(u32 number, const Shape *s, u32 n) {
  Layout *l = &layouts[number][n == 64];
  if (l->d) return l;
  u32 M = s->m, N = s->n, K = s->k;
  l->a = calloc(s->blocks * M * K, sizeof(Spot));
  l->b = calloc(s->blocks * N * K, sizeof(Spot));
  Spot *d = calloc(s->blocks * M * N, sizeof(Spot));
  for (u32 block = 0; block < s->blocks; block++) {
    for (u32 k = 0; k < K; k++) {
      u32 lane, bit;
      for (u32 r = 0; r < M; r++) { place_of(s, n, M, r, k, block, element_bits(s->a), &lane, &bit); l->a[(block * M + r) * K + k] = (Spot){(u8)lane, (u16)bit}; }
      for (u32 c = 0; c < N; c++) { place_of(s, n, N, c, k, block, element_bits(s->b), &lane, &bit); l->b[(block * N + c) * K + k] = (Spot){(u8)lane, (u16)bit}; }
    }
    for (u32 r = 0; r < M; r++) for (u32 c = 0; c < N; c++) d[(block * M + r) * N + c] = spot_of_result(s, n, r, c, block);
  }
  l->d = d;
  return l;
}

/* Halves of a row of lanes as numbers. */
static void widen(const u32 *in, u32 shift, u32 count, int bfloat, f64 *out) {
  if (bfloat) {
    for (u32 x = 0; x < count; x++) out[x] = as_f32(in[x] >> shift << 16);
    return;
  }
  u32 x = 0;
#if defined(__F16C__) && defined(__AVX2__)
  for (; x + 8 <= count; x += 8) {
    __m256i words = _mm256_and_si256(_mm256_srli_epi32(_mm256_loadu_si256((const __m256i *)(in + x)), (int)shift), _mm256_set1_epi32(0xffff));
    __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(words, words), 8);
    __m256 singles = _mm256_cvtph_ps(_mm256_castsi256_si128(packed));
    _mm256_storeu_pd(out + x, _mm256_cvtps_pd(_mm256_castps256_ps128(singles)));
    _mm256_storeu_pd(out + x + 4, _mm256_cvtps_pd(_mm256_extractf128_ps(singles, 1)));
  }
#endif
  for (; x < count; x++) out[x] = as_f16_quiet(in[x] >> shift & 0xffff);
}

/* The common case: halves in vector registers, nothing negated, all written, the outer index along neighbouring lanes.
 * `across`: element (k, outer) instead of (outer, k). */
static int gather_rows(Wave *w, const Shape *s, const Operand *o, u32 e, const Spot *spots, u32 outer, f64 *across) {
  u32 n = w->lanes, K = s->k;
  if (o->kind != VGPR || (e != E_F16 && e != E_BF16) || (o->modifiers & (NEG | NEG_HIGH))) return 0;
  for (u32 d = 0; d < o->dwords; d++) if (w->lanes_v[o->index + d]) return 0;
  for (u32 k = 0; k < K; k++) {
    const Spot *first = spots + k, *last = spots + (outer - 1) * K + k;
    if (last->lane - first->lane != (int)outer - 1 || last->bit != first->bit) return 0;
    widen(w->v + (size_t)(o->index + first->bit / 32) * n + first->lane, first->bit & 16, outer, e == E_BF16, across + k * outer);
  }
  return 1;
}

/* Elements of A or B as numbers, `outer` by `K`; which of the outer ones hold bits that nothing wrote. */
static void gather(Wave *w, const Shape *s, const Operand *o, u32 e, const Spot *spots, u32 outer, f64 *out, u8 *unwritten) {
  u32 n = w->lanes, K = s->k, size = element_bits(e);
  int integer = s->acc == ACC_I32, low = (o->modifiers & NEG) != 0, high = (o->modifiers & NEG_HIGH) != 0;
  u64 any = 0;
  for (u32 d = 0; d < o->dwords && o->kind == VGPR; d++) any |= w->lanes_v[o->index + d];
  memset(unwritten, 0, outer);
  for (u32 x = 0; x < outer * K; x++) {
    u32 at = spots[x].bit / 32, shift = spots[x].bit % 32;
    u64 bits;
    if (o->kind == VGPR) {
      const u32 *in = w->v + (size_t)(o->index + at) * n + spots[x].lane;
      bits = size == 64 ? in[0] | (u64)in[n] << 32 : size == 32 ? in[0] : in[0] >> shift & ((1u << size) - 1);
      if (any >> spots[x].lane & 1 && w->lanes_v[o->index + at] >> spots[x].lane & 1) {
        u32 u = unwritten_row(w, o->index + at)[spots[x].lane] >> shift;
        if (size >= 32 ? u : u & ((1u << size) - 1)) unwritten[x / K] = 1;
      }
    } else bits = size == 64 ? o->value : (u32)o->value >> (size == 32 ? 0 : shift) & (size == 32 ? ~0u : (1u << size) - 1);
    int negate = !integer && (s->wmma && size < 32 && (x % K & 1) ? high : low);
    out[x] = number(bits, e, s->fnuz, negate, low);
  }
}

static void run_matrix(Wave *w, const Inst *i) {
  const Shape *s = &shapes[i->op];
  u32 n = w->lanes, M = s->m, N = s->n, K = s->k, words = i->d.dwords;
  const Operand *oc = &i->s[2];
  if (anything_pending(w)) use_operands(w, i);
  const Layout *layout = layout_of(i->op, s, n);
  for (u32 k = 0; k < 2 && s->wmma && s->generation < GFX12; k++) /* both halves of a wave hold A and B there */
    for (u32 d = 0; d < i->s[k].dwords && i->s[k].kind == VGPR; d++) {
      const u32 *r = row(w, i->s[k].index + d);
      for (u32 l = 16; l < n; l++) if (r[l] != r[l % 16]) { report(w, HAZARD, l, i->s[k].index + d, 1); d = 64; break; }
    }
  f64 *A = w->machine->matrix, *B = A + 64 * 256;
  f64 *T = B + 64 * 256, *S = T + 64 * 256;
  u32 *D = (u32 *)(S + 64 * 64), *DU = D + 64 * 64;
  u8 UA[64], UB[64];
  u32 csize = s->acc == ACC_F64 ? 64 : s->acc == ACC_F16 || s->acc == ACC_BF16 ? 16 : 32, top = s->wmma && s->generation < GFX12 && csize == 16 && (i->flags & D16_HIGH) ? 16 : 0;
  u64 any = 0;
  for (u32 d = 0; d < words; d++) {
    if (oc->kind == VGPR) any |= w->lanes_v[oc->index + d];
    if (csize == 16 && oc->kind == VGPR) memcpy(D + d * n, row(w, oc->index + d), n * 4); /* the other halves stay */
  }
  memset(DU, 0, words * n * 4);
  int any_unwritten = 0;
  for (u32 block = 0; block < s->blocks; block++) {
    int quick = gather_rows(w, s, &i->s[0], s->a, layout->a + block * M * K, M, A) && gather_rows(w, s, &i->s[1], s->b, layout->b + block * N * K, N, T);
    u32 step = quick ? M : 1, stride = quick ? 1 : K; /* A by columns, or by rows */
    memset(UA, 0, sizeof UA);
    memset(UB, 0, sizeof UB);
    if (!quick) {
      gather(w, s, &i->s[0], s->a, layout->a + block * M * K, M, A, UA);
      gather(w, s, &i->s[1], s->b, layout->b + block * N * K, N, B, UB);
    }
    if (s->acc != ACC_I32 && s->acc != ACC_F64) { /* in double precision: the hardware's order is not documented */
      for (u32 c = 0; c < N && !quick; c++) for (u32 k = 0; k < K; k++) T[k * N + c] = B[c * K + k];
      for (u32 r = 0; r < M; r++) {
        f64 *sums = S + r * N;
        memset(sums, 0, N * sizeof(f64));
        for (u32 k = 0; k < K; k++) {
          f64 x = A[r * stride + k * step];
          const f64 *y = T + k * N;
          for (u32 c = 0; c < N; c++) sums[c] += x * y[c];
        }
      }
    }
    int plain = csize == 32 && s->acc == ACC_F32 && !any && !(oc->modifiers & (ABS | NEG));
    for (u32 r = 0; r < M && plain; r++) plain = !UA[r];
    for (u32 c = 0; c < N && plain; c++) plain = !UB[c];
    if (plain) {
      const u32 *in = oc->kind == VGPR ? w->v + (size_t)oc->index * n : 0;
      const Spot *spots = layout->d + block * M * N;
      f64 constant = as_f32((u32)oc->value);
      for (u32 r = 0; r < M; r++) { /* the columns of a row lie in neighbouring lanes */
        u32 at = spots[r * N].bit / 32 * n + spots[r * N].lane;
        const f64 *sums = S + r * N;
        if (in) for (u32 c = 0; c < N; c++) D[at + c] = of_f32((f32)(sums[c] + as_f32(in[at + c])));
        else for (u32 c = 0; c < N; c++) D[at + c] = of_f32((f32)(sums[c] + constant));
      }
      continue;
    }
    for (u32 r = 0; r < M; r++)
      for (u32 c = 0; c < N; c++) {
        Spot spot = layout->d[(block * M + r) * N + c];
        u32 lane = spot.lane, reg = spot.bit / 32, bit = spot.bit % 32 + top, u = UA[r] | UB[c];
        u64 cbits = oc->value >> (csize == 16 ? bit : 0), out;
        if (oc->kind == VGPR) {
          const u32 *in = w->v + (size_t)(oc->index + reg) * n + lane;
          cbits = csize == 64 ? in[0] | (u64)in[n] << 32 : csize == 16 ? in[0] >> bit & 0xffff : in[0];
          if (any >> lane & 1 && w->lanes_v[oc->index + reg] >> lane & 1) u |= unwritten_row(w, oc->index + reg)[lane] >> bit & (csize == 16 ? 0xffff : ~0u) ? 1 : 0;
        }
        any_unwritten |= (int)u;
        const f64 *x = A + r * K, *y = B + c * K;
        if (s->acc == ACC_I32) {
          i64 sum = (i32)cbits;
          for (u32 k = 0; k < K; k++) sum += (i64)x[k] * (i64)y[k];
          out = (u32)(i->flags & CLAMP ? (i64)saturate(sum, INT32_MIN, INT32_MAX) : sum);
        } else if (s->acc == ACC_F64) {
          f64 sum = as_f64(cbits);
          for (u32 k = 0; k < K; k++) sum = fma(x[k], y[k], sum);
          out = of_f64(sum);
        } else {
          f64 sum = S[r * N + c], start = csize == 32 ? as_f32((u32)cbits) : s->acc == ACC_F16 ? as_f16((u32)cbits & 0xffff) : as_bf16((u32)cbits & 0xffff);
          if (oc->modifiers & ABS) start = fabs(start);
          if (oc->modifiers & NEG) start = -start;
          sum += start;
          out = csize == 32 ? of_f32((f32)sum) : s->acc == ACC_F16 ? of_f16(sum) : of_bf16((f32)sum);
        }
        if (csize == 16) {
          u32 keep = 0xffffu << (16 - bit);
          D[reg * n + lane] = (D[reg * n + lane] & keep) | (u32)out << bit;
          if (u) DU[reg * n + lane] |= 0xffffu << bit;
        } else {
          D[reg * n + lane] = (u32)out;
          DU[reg * n + lane] = u ? ~0u : 0;
          if (csize == 64) { D[(reg + 1) * n + lane] = (u32)(out >> 32); DU[(reg + 1) * n + lane] = u ? ~0u : 0; }
        }
      }
  }
  for (u32 k = 0; k < words; k++) {
    commit_row(w, i->d.index + k, D + k * n, all_lanes(w));
    mark_row(w, i->d.index + k, any_unwritten ? DU + k * n : 0, all_lanes(w));
  }
}
