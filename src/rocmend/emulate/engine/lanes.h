/* Instructions that move values between lanes, and between vector and scalar registers. */
#pragma once
#include "memory.h"
#include "scalar.h"

enum { READLANE, READFIRSTLANE, WRITELANE, PERMLANE16, PERMLANEX16, PERMLANE64, BPERMUTE, PERMUTE, SWIZZLE, SWAP, PERMLANE16_SWAP, PERMLANE32_SWAP, PERMLANE16_VAR, PERMLANEX16_VAR, SWAP16 };

static u32 swizzled(u32 lane, u32 offset, u32 lanes) {
  if (offset & 0x8000) {
    if (offset >= 0xc000) { /* rotate; the codes of the FFT do not come this far */
      u32 mask = offset & 31, by = offset >> 5 & 31, left = !(offset >> 10 & 1);
      u32 x = lane & 31, moved = left ? x + by : x - by;
      return (lane & ~31u) | (x & mask) | (moved & ~mask & 31);
    }
    return (lane & ~3u) | (offset >> 2 * (lane & 3) & 3);
  }
  u32 x = lane & 31, and = offset & 31, or = offset >> 5 & 31, xor = offset >> 10 & 31;
  (void)lanes;
  return (lane & ~31u) | (((x & and) | or) ^ xor);
}

static void run_lanes(Wave *w, const Inst *i) {
  u64 exec = exec_of(w);
  u32 n = w->lanes, out[MAX_LANES], u[MAX_LANES];
  const Operand *a = &i->s[0], *b = &i->s[1], *c = &i->s[2];
  if (anything_pending(w)) use_operands(w, i);
  u64 mask = exec;
  switch (i->op) {
    case READLANE: case READFIRSTLANE: {
      u32 lane = i->op == READLANE ? scalar32(w, b) % n : exec ? (u32)__builtin_ctzll(exec) : 0, value, unwritten = 0;
      if (i->op == READLANE) check_address(w, b, exec);
      if (a->kind == VGPR) {
        value = row(w, a->index)[lane];
        if (w->lanes_v[a->index] >> lane & 1) unwritten = unwritten_row(w, a->index)[lane];
      } else { value = scalar32(w, a); unwritten = (u32)scalar_unwritten(w, a); }
      if (i->d.index != NULL_REGISTER) { w->s[i->d.index] = value; w->unwritten_s[i->d.index] = unwritten; }
      return;
    }
    case WRITELANE: {
      u32 lane = scalar32(w, b) % n, unwritten = a->kind == SGPR ? w->unwritten_s[a->index] : 0;
      row(w, i->d.index)[lane] = scalar32(w, a);
      if (unwritten) { unwritten_row(w, i->d.index)[lane] = unwritten; w->lanes_v[i->d.index] |= 1ull << lane; }
      else { if (w->unwritten_v) unwritten_row(w, i->d.index)[lane] = 0; w->lanes_v[i->d.index] &= ~(1ull << lane); }
      return;
    }
    case SWAP: {
      u32 x[MAX_LANES], y[MAX_LANES], ux[MAX_LANES], uy[MAX_LANES];
      memcpy(x, row(w, i->d.index), 4 * n); memcpy(y, row(w, a->index), 4 * n);
      int any = ((w->lanes_v[i->d.index] | w->lanes_v[a->index]) & exec) != 0;
      if (any) { memcpy(ux, unwritten_row(w, i->d.index), 4 * n); memcpy(uy, unwritten_row(w, a->index), 4 * n); }
      commit_row(w, i->d.index, y, exec); commit_row(w, a->index, x, exec);
      if (any) { mark_row(w, i->d.index, uy, exec); mark_row(w, a->index, ux, exec); }
      return;
    }
    case PERMLANE16_SWAP: case PERMLANE32_SWAP: { /* odd rows of the first with even rows of the second */
      u32 *x = row(w, i->d.index), *y = row(w, a->index), step = i->op == PERMLANE16_SWAP ? 16 : 32;
      int any = (w->lanes_v[i->d.index] | w->lanes_v[a->index]) != 0;
      u32 *ux = any ? unwritten_row(w, i->d.index) : 0, *uy = any ? unwritten_row(w, a->index) : 0;
      u64 lx = w->lanes_v[i->d.index], ly = w->lanes_v[a->index];
      for (u32 l = 0; l < n; l++) {
        if (l & step) continue;
        u32 t = x[l + step]; x[l + step] = y[l]; y[l] = t;
        if (any) {
          t = ux[l + step]; ux[l + step] = uy[l]; uy[l] = t;
          u64 p = lx >> (l + step) & 1, q = ly >> l & 1;
          lx = (lx & ~(1ull << (l + step))) | q << (l + step);
          ly = (ly & ~(1ull << l)) | p << l;
        }
      }
      w->lanes_v[i->d.index] = lx; w->lanes_v[a->index] = ly;
      return;
    }
    default: break;
  }
  /* what follows reads lanes of the first operand, or of the second for the LDS's two */
  const Operand *data = i->op == BPERMUTE || i->op == PERMUTE ? b : a;
  u32 room[MAX_LANES], index_room[MAX_LANES];
  u64 ignored = ~0ull;
  Inst plain = *i;
  const u32 *in = fetch_row(w, &plain, data == b ? 1 : 0, room, &ignored, 0);
  u64 lanes_u = data->kind == VGPR ? w->lanes_v[data->index] : 0;
  const u32 *in_u = lanes_u ? unwritten_row(w, data->index) : 0;
  const u32 *index = 0;
  if (i->op == BPERMUTE || i->op == PERMUTE) { check_address(w, a, exec); index = fetch_row(w, &plain, 0, index_room, &ignored, 0); }
  if (i->op == PERMLANE16_VAR || i->op == PERMLANEX16_VAR) { check_address(w, b, exec); index = fetch_row(w, &plain, 1, index_room, &ignored, 0); }
  if (i->op == PERMUTE) { memset(out, 0, sizeof out); memset(u, 0, sizeof u); }
  u64 select = i->op == PERMLANE16 || i->op == PERMLANEX16 ? (u64)scalar32(w, b) | (u64)scalar32(w, c) << 32 : 0;
  const u32 *old = row(w, i->d.index);
  for (u32 l = 0; l < n; l++) {
    u32 from = l;
    int reads = 1;
    switch (i->op) {
      case PERMLANE16: case PERMLANEX16:
        from = ((l & ~15u) ^ (i->op == PERMLANEX16 ? 16u : 0)) | (u32)(select >> 4 * (l & 15) & 15);
        break;
      case PERMLANE16_VAR: case PERMLANEX16_VAR: from = ((l & ~15u) ^ (i->op == PERMLANEX16_VAR ? 16u : 0)) | (index[l] & 15); break;
      case PERMLANE64: from = l ^ 32; break;
      case SWIZZLE: from = swizzled(l, (u32)i->immediate, n); break;
      case BPERMUTE: from = ((index[l] + (u32)i->immediate) >> 2) % n; if ((w->machine->generation == GFX10 || w->machine->generation == GFX11) && n == 64) from = (from & 31) | (l & 32); break;
      case PERMUTE: {
        u32 to = ((index[l] + (u32)i->immediate) >> 2) % n;
        if ((w->machine->generation == GFX10 || w->machine->generation == GFX11) && n == 64) to = (to & 31) | (l & 32);
        if (exec >> l & 1) { out[to] = in[l]; u[to] = in_u && lanes_u >> l & 1 ? in_u[l] : 0; }
        continue;
      }
      default: break;
    }
    if (from >= n) reads = 0;
    else if (!(exec >> from & 1)) /* an inactive lane: read with fi, else zero or the old value */
      reads = i->op == PERMLANE64 || ((i->op == PERMLANE16 || i->op == PERMLANEX16 || i->op == PERMLANE16_VAR || i->op == PERMLANEX16_VAR) && (i->flags & FETCH_INACTIVE));
    if (!reads) {
      int keeps = (i->op == PERMLANE16 || i->op == PERMLANEX16 || i->op == PERMLANE16_VAR || i->op == PERMLANEX16_VAR) && !(i->flags & BOUND_CTRL);
      out[l] = keeps ? old[l] : 0;
      u[l] = keeps && (w->lanes_v[i->d.index] >> l & 1) ? unwritten_row(w, i->d.index)[l] : 0;
    } else { out[l] = in[from]; u[l] = in_u && lanes_u >> from & 1 ? in_u[from] : 0; }
  }
  int any = 0;
  for (u32 l = 0; l < n; l++) if (mask >> l & 1) any |= u[l] != 0;
  commit_row(w, i->d.index, out, mask);
  mark_row(w, i->d.index, any ? u : 0, mask);
  if (i->counter < COUNTERS) track(w, i->counter, 0, i->d.index, 1);
}
