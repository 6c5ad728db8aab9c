/* Reading operands and writing results, with what is known of them: written or not, waited for or not. */
#pragma once
#include "numbers.h"

/* What a vector instruction's function gets: rows of lanes, and masks of a bit a lane. */
typedef struct {
  const u32 *s[MAX_SOURCES];
  u32 *d;
  u64 mask[MAX_SOURCES], out;
  u32 lanes, mode;
  const Inst *inst;
} Vector;

typedef struct {
  u64 s[MAX_SOURCES], d;
  u32 scc, pc;
  const Inst *inst;
} Scalar;

static inline u32 *row(Wave *w, u32 index) { return w->v + (size_t)index * w->lanes; }

static void use_scalar(Wave *w, u32 index, u32 dwords, int writing) {
  for (u32 i = index; i < index + dwords && i < SGPRS; i++)
    if (w->pending_s[i]) {
      report(w, writing ? OVERWRITTEN : NOT_WAITED, 0, i, 0);
      w->pending_s[i] = 0;
    }
}
static void use_vector(Wave *w, u32 index, u32 dwords, int writing, u32 except) {
  for (u32 i = index; i < index + dwords; i++)
    if (w->pending_v[i] & ~except) {
      report(w, writing ? OVERWRITTEN : NOT_WAITED, 0, i, 1);
      w->pending_v[i] = 0;
    }
}
static inline int anything_pending(const Wave *w) {
  return (w->machine->checks & CHECK_WAITS) && (w->outstanding[C_LOAD] | w->outstanding[C_LDS] | w->outstanding[C_SCALAR]);
}
static void use_operands(Wave *w, const Inst *i) {
  if (i->flags & IMPLICIT_VCC) use_scalar(w, VCC, w->lanes / 32, 0);
  for (u32 k = 0; k < i->sources; k++) {
    const Operand *o = &i->s[k];
    if (o->kind == VGPR) use_vector(w, o->index, o->dwords, 0, 0);
    else if (o->kind == SGPR) use_scalar(w, o->index, o->dwords, 0);
  }
  const Operand *out[2] = {&i->d, &i->e};
  for (int k = 0; k < 2; k++)
    if (out[k]->kind == VGPR) use_vector(w, out[k]->index, out[k]->dwords, 1, 0);
    else if (out[k]->kind == SGPR) use_scalar(w, out[k]->index, out[k]->dwords, 1);
}

/* Bits that nothing wrote. */
static u32 *unwritten_row(Wave *w, u32 index) {
  if (!w->unwritten_v) {
    size_t rows = w->registers;
    w->unwritten_v = calloc(rows * w->lanes, 4);
    for (u32 r = 0; r < rows; r++)
      for (u32 l = 0; l < w->lanes; l++)
        if (w->lanes_v[r] >> l & 1) w->unwritten_v[r * w->lanes + l] = ~0u;
  }
  return w->unwritten_v + (size_t)index * w->lanes;
}
static void mark_row(Wave *w, u32 index, const u32 *unwritten, u64 mask) {
  if (!unwritten) {
    if ((w->lanes_v[index] & mask) && w->unwritten_v) {
      u32 *u = unwritten_row(w, index);
      for (u32 l = 0; l < w->lanes; l++)
        if (mask >> l & 1) u[l] = 0;
    }
    w->lanes_v[index] &= ~mask;
    return;
  }
  u32 *u = unwritten_row(w, index);
  u64 any = w->lanes_v[index];
  for (u32 l = 0; l < w->lanes; l++)
    if (mask >> l & 1) {
      u[l] = unwritten[l];
      any = u[l] ? any | 1ull << l : any & ~(1ull << l);
    }
  w->lanes_v[index] = any;
}
static inline int operand_unwritten(const Wave *w, const Operand *o, u64 exec) {
  if (o->kind == VGPR) {
    u64 any = 0;
    for (u32 k = 0; k < o->dwords; k++) any |= w->lanes_v[o->index + k];
    return (any & exec) != 0;
  }
  if (o->kind == SGPR) {
    u32 any = 0;
    for (u32 k = 0; k < o->dwords && o->index + k < SGPRS; k++) any |= w->unwritten_s[o->index + k];
    return any != 0;
  }
  return 0;
}

/* DPP: which lane each lane reads; 255: none. */
static void dpp_lanes(const Wave *w, const Inst *i, u8 *from) {
  u32 c = i->dpp, n = w->lanes;
  for (u32 l = 0; l < n; l++) {
    u32 r = l & ~15u, x = l & 15;
    int f = 255;
    if (i->flags & DPP8) f = (int)((l & ~7u) | (u32)(i->immediate >> 3 * (l & 7) & 7));
    else if (c < 0x100) f = (int)((l & ~3u) | (c >> 2 * (l & 3) & 3));
    else if (c >= 0x101 && c <= 0x10f) f = x + (c & 15) < 16 ? (int)(l + (c & 15)) : 255;
    else if (c >= 0x111 && c <= 0x11f) f = x >= (c & 15) ? (int)(l - (c & 15)) : 255;
    else if (c >= 0x121 && c <= 0x12f) f = (int)(r | ((x - (c & 15)) & 15));
    else if (c == 0x130) f = l + 1 < n ? (int)l + 1 : 255;      /* wave_shl */
    else if (c == 0x134) f = (int)((l + 1) % n);                /* wave_rol */
    else if (c == 0x138) f = l ? (int)l - 1 : 255;              /* wave_shr */
    else if (c == 0x13c) f = (int)((l + n - 1) % n);            /* wave_ror */
    else if (c == 0x140) f = (int)(r | (15 - x));               /* row_mirror */
    else if (c == 0x141) f = (int)((l & ~7u) | (7 - (l & 7)));  /* row_half_mirror */
    else if (c == 0x142) f = l >= 16 ? (int)r - 1 : 255;        /* row_bcast:15 */
    else if (c == 0x143) f = l >= 32 ? (int)((l & ~31u) - 1) : 255; /* row_bcast:31 */
    else if (c >= 0x150 && c <= 0x15f) f = (int)(r | (c & 15)); /* row_share, row_newbcast */
    else if (c >= 0x160 && c <= 0x16f) f = (int)(r | (x ^ (c & 15)));
    from[l] = (u8)f;
  }
}

/* Rows as an instruction sees them. `shadow` selects unwritten bits instead of values (then without modifiers). */
static const u32 *fetch_row(Wave *w, const Inst *i, u32 k, u32 *room, u64 *valid, int shadow) {
  const Operand *o = &i->s[k];
  u32 n = w->lanes, dwords = o->dwords;
  const u32 *in = room;
  if (o->kind == VGPR && (!shadow || dwords == 1)) in = shadow ? unwritten_row(w, o->index) : row(w, o->index);
  else if (o->kind == VGPR) {
    for (u32 d = 0; d < dwords; d++) memcpy(room + d * n, unwritten_row(w, o->index + d), n * 4);
  } else
    for (u32 d = 0; d < dwords; d++) {
      u32 value = o->kind == SGPR ? (shadow ? w->unwritten_s[o->index + d] : w->s[o->index + d]) : shadow ? 0 : (u32)(o->value >> 32 * (d & 1));
      for (u32 l = 0; l < n; l++) room[d * n + l] = value;
    }
  if ((i->flags & DPP) && k == 0) {
    u8 from[MAX_LANES];
    u64 exec = exec_of(w), reads = 0;
    u32 moved[2 * MAX_LANES];
    dpp_lanes(w, i, from);
    for (u32 l = 0; l < n; l++) {
      int ok = from[l] < n && ((exec >> from[l] & 1) || (i->flags & FETCH_INACTIVE));
      if (ok) reads |= 1ull << l;
      for (u32 d = 0; d < dwords && d < 2; d++) moved[d * n + l] = ok ? in[d * n + from[l]] : 0;
    }
    if (!(i->flags & DPP8)) {
      if (!(i->flags & BOUND_CTRL)) *valid &= reads;
      for (u32 l = 0; l < n; l++)
        if (!(i->row_mask >> (l / 16 & 3) & 1) || !(i->bank_mask >> (l / 4 & 3) & 1)) *valid &= ~(1ull << l);
    }
    memcpy(room, moved, dwords * n * 4);
    in = room;
  }
  if (o->select) {
    for (u32 l = 0; l < n; l++) {
      u32 x = in[l];
      switch (o->select) {
        case BYTE_0: case BYTE_1: case BYTE_2: case BYTE_3:
          x = x >> 8 * (o->select - BYTE_0) & 255;
          if ((o->modifiers & SEXT) && !shadow) x = (u32)(i32)(i8)x;
          break;
        default:
          x = x >> 16 * (o->select - WORD_0) & 0xffff;
          if ((o->modifiers & SEXT) && !shadow) x = (u32)(i32)(i16)x;
      }
      room[l] = x;
    }
    in = room;
  }
  u32 m = o->modifiers;
  switch (o->type) {
    case F16: case B16: case I16: case U16: case BF16:
      for (u32 l = 0; l < n; l++) {
        u32 x = m & HIGH ? in[l] >> 16 : in[l] & 0xffff;
        if (!shadow && o->type != I16 && o->type != U16) { if (m & ABS) x &= 0x7fff; if (m & NEG) x ^= 0x8000; }
        room[l] = x;
      }
      return room;
    case PK16:
      if ((m & (HIGH | SELECT_HIGH | NEG | NEG_HIGH)) == SELECT_HIGH) return in;
      for (u32 l = 0; l < n; l++) {
        u32 x = in[l], lo = m & HIGH ? x >> 16 : x & 0xffff, hi = m & SELECT_HIGH ? x >> 16 : x & 0xffff;
        if (!shadow) { if (m & NEG) lo ^= 0x8000; if (m & NEG_HIGH) hi ^= 0x8000; }
        room[l] = lo | hi << 16;
      }
      return room;
    case PK32: {
      u32 kept[2 * MAX_LANES];
      for (u32 l = 0; l < n; l++) {
        u32 lo = in[(m & HIGH ? n : 0) + l], hi = in[(m & SELECT_HIGH ? n : 0) + l];
        if (!shadow) { if (m & NEG) lo ^= 0x80000000u; if (m & NEG_HIGH) hi ^= 0x80000000u; }
        kept[l] = lo; kept[n + l] = hi;
      }
      memcpy(room, kept, 8 * n);
      return room;
    }
    case MIX: /* single precision, or a half of the register */
      for (u32 l = 0; l < n; l++) {
        u32 x = in[l];
        if (m & SELECT_HIGH) { x = m & HIGH ? x >> 16 : x & 0xffff; x = shadow ? (x ? ~0u : 0) : of_f32(as_f16(x)); }
        if (!shadow) { if (m & ABS) x &= 0x7fffffffu; if (m & NEG) x ^= 0x80000000u; }
        room[l] = x;
      }
      return room;
    default:
      if (!(m & (ABS | NEG)) || shadow) return in;
      if (dwords == 1) {
        for (u32 l = 0; l < n; l++) { u32 x = in[l]; if (m & ABS) x &= 0x7fffffffu; if (m & NEG) x ^= 0x80000000u; room[l] = x; }
      } else {
        for (u32 l = 0; l < n; l++) {
          u32 x = in[n + l];
          if (m & ABS) x &= 0x7fffffffu;
          if (m & NEG) x ^= 0x80000000u;
          room[l] = in[l]; room[n + l] = x;
        }
      }
      return room;
  }
}

/* Denormals are flushed where the mode says so: bits 4 and 5 of MODE for single precision, 6 and 7 for the others. */
static inline u32 flushed_half(u32 x) { return x & 0x7c00 ? x : x & 0x8000; }
static inline u32 flushed_pair(u32 x) { return flushed_half(x & 0xffff) | flushed_half(x >> 16) << 16; }
static void flush_rows(u32 type, const u32 *in, u32 *room, u32 n) {
  for (u32 l = 0; l < n; l++)
    switch (type) {
      case F32: room[l] = of_f32(flushed(as_f32(in[l]))); break;
      case PK32: room[l] = of_f32(flushed(as_f32(in[l]))); room[n + l] = of_f32(flushed(as_f32(in[n + l]))); break;
      case F16: room[l] = flushed_half(in[l]); break;
      case PK16: room[l] = flushed_pair(in[l]); break;
      default: { u32 high = in[n + l], keep = (high & 0x7ff00000u) != 0; room[l] = keep ? in[l] : 0; room[n + l] = keep ? high : high & 0x80000000u; }
    }
}
static inline int flushes(const Wave *w, u32 type, u32 bit) {
  int single = type == F32 || type == PK32;
  return (single || type == F16 || type == PK16 || type == F64) && !(w->mode >> (bit + (single ? 0 : 2)) & 1);
}
static const u32 *flush_in(const Wave *w, const Operand *o, const u32 *in, u32 *room) {
  if (!flushes(w, o->type, 4)) return in;
  flush_rows(o->type, in, room, w->lanes);
  return room;
}

static inline f64 modified(const Inst *i, int scales, f64 x) {
  if (scales) { x *= i->omod == 1 ? 2.0 : i->omod == 2 ? 4.0 : 0.5; if (x == 0) x = 0; }
  if (i->flags & CLAMP) x = x != x ? 0 : MIN(MAX(x, 0.0), 1.0);
  return x;
}
/* Denormals of the result, its scale and its bounds. Scales do nothing where denormals are kept, or in IEEE mode. */
static void finish_floats(const Wave *w, const Inst *i, u32 *d) {
  u32 n = w->lanes, type = i->d.type;
  int flush = flushes(w, type, 5), scales = i->omod && flush && (i->generation >= GFX12 || !(w->mode >> 9 & 1));
  if (flush) flush_rows(type, d, d, n);
  if (!scales && !(i->flags & CLAMP)) return;
  for (u32 l = 0; l < n; l++)
    switch (type) {
      case F32: d[l] = of_f32((f32)modified(i, scales, as_f32(d[l]))); break;
      case PK32: d[l] = of_f32((f32)modified(i, scales, as_f32(d[l]))); d[n + l] = of_f32((f32)modified(i, scales, as_f32(d[n + l]))); break;
      case F16: d[l] = of_f16(modified(i, scales, as_f16(d[l]))); break;
      case PK16: d[l] = of_f16(modified(i, 0, as_f16(d[l] & 0xffff))) | of_f16(modified(i, 0, as_f16(d[l] >> 16))) << 16; break;
      case F64: { u64 x = of_f64(modified(i, scales, as_f64(d[l] | (u64)d[n + l] << 32))); d[l] = (u32)x; d[n + l] = (u32)(x >> 32); break; }
      default: break;
    }
  if (flush) flush_rows(type, d, d, n);
  if (scales) /* a scaled zero has no sign */
    for (u32 l = 0; l < n; l++) {
      u32 *top = type == F64 ? &d[n + l] : &d[l], sign = type == F16 ? 0x8000u : 0x80000000u;
      if (*top == sign && (type != F64 || !d[l])) *top = 0;
    }
}

/* Where the lanes of a half-word result go in its register. */
static void place_halves(const Wave *w, const Inst *i, u32 *d, const u32 *old) {
  u32 n = w->lanes;
  const Operand *o = &i->d;
  if (o->select || (i->flags & SDWA)) {
    u32 shift = o->select >= WORD_0 ? 16u * (o->select - WORD_0) : o->select ? 8u * (o->select - BYTE_0) : 0;
    u32 width = o->select >= WORD_0 ? 16 : o->select ? 8 : 32;
    if (width == 32) return;
    u32 mask = ((1u << width) - 1) << shift;
    for (u32 l = 0; l < n; l++) {
      u32 x = d[l] << shift & mask;
      if (i->flags & PRESERVE) x |= old[l] & ~mask;
      else if ((i->flags & SDWA_SEXT) && (x >> (shift + width - 1) & 1)) x |= ~((1ull << (shift + width)) - 1);
      d[l] = x;
    }
    return;
  }
  if (o->modifiers & HIGH) for (u32 l = 0; l < n; l++) d[l] = (old[l] & 0xffff) | d[l] << 16;
  else if (i->flags & ZERO_HIGH) for (u32 l = 0; l < n; l++) d[l] &= 0xffff;
  else for (u32 l = 0; l < n; l++) d[l] = (old[l] & 0xffff0000u) | (d[l] & 0xffff);
}
static inline int is_half(u32 type) { return type == F16 || type == B16 || type == I16 || type == U16 || type == BF16; }

static inline void commit_row(Wave *w, u32 index, const u32 *d, u64 mask) {
  u32 *out = row(w, index), n = w->lanes;
  if (mask == all_lanes(w)) { memcpy(out, d, n * 4); return; }
  for (u32 l = 0; l < n; l++) { u32 m = (u32)-(i32)(mask >> l & 1); out[l] = (out[l] & ~m) | (d[l] & m); }
}
static inline void write_mask(Wave *w, u32 index, u64 value, u64 unwritten) {
  if (index == NULL_REGISTER) return;
  w->s[index] = (u32)value;
  w->unwritten_s[index] = (u32)unwritten;
  if (w->lanes == 64) { w->s[index + 1] = (u32)(value >> 32); w->unwritten_s[index + 1] = (u32)(unwritten >> 32); }
}
static inline u64 unwritten_mask(const Wave *w, u32 index) {
  return w->lanes == 64 ? w->unwritten_s[index] | (u64)w->unwritten_s[index + 1] << 32 : w->unwritten_s[index];
}
