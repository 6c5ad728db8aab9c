/* Vector arithmetic: an instruction's function over all lanes, three times where it computes with bits that nothing wrote. */
#pragma once
#include "operands.h"

typedef void (*VectorOp)(Vector *);
extern const VectorOp vector_ops[];

typedef struct { u32 row[MAX_SOURCES][4 * MAX_LANES]; u32 d[4 * MAX_LANES]; } Rooms;

/* Values in the place of unwritten bits: zeros, ones, a pattern of the register's own and its inverse; 4: see below. */
static inline u32 filled(u32 in, u32 u, int fill, u32 salt) {
  u32 pattern = 0x5a3c96f1u * (2 * salt + 1);
  return fill == 0 ? in & ~u : fill == 1 ? in | u : (in & ~u) | ((fill == 3 ? ~pattern : pattern) & u);
}
enum { FILLS = 5 };

/* Evaluate once. `fill`: -1 as it is, else what unwritten bits become. */
static void evaluate(Wave *w, const Inst *i, Rooms *rooms, Vector *x, u64 *valid, int fill) {
  u32 n = w->lanes;
  for (u32 k = 0; k < i->sources; k++) {
    const Operand *o = &i->s[k];
    if (o->type == MASK) {
      u64 mask = o->kind == LITERAL ? (o->value ? ~0ull : 0) : mask_of(w, o->index);
      if (fill >= 0 && o->kind == SGPR) {
        u64 u = unwritten_mask(w, o->index);
        u64 pattern = 0x6db6db6db6db6db6ull * (2 * o->index + 1);
        mask = fill == 0 ? mask & ~u : fill == 1 ? mask | u : (mask & ~u) | ((fill == 3 ? ~pattern : pattern) & u);
      }
      x->mask[k] = mask;
      continue;
    }
    const u32 *in = fetch_row(w, i, k, rooms->row[k], valid, 0);
    if (fill >= 0 && o->kind != LITERAL) {
      u32 room[4 * MAX_LANES];
      u64 ignored = ~0ull;
      const u32 *u = fetch_row(w, i, k, room, &ignored, 1);
      for (u32 l = 0; l < n * o->dwords; l++)
        rooms->row[k][l] = filled(in[l], u[l], fill, o->index + (o->kind == SGPR ? 1024 : 0) + l / n);
      in = rooms->row[k];
    }
    if ((i->flags & FLOATS) && (w->mode & 0xf0) != 0xf0) in = flush_in(w, o, in, rooms->row[k]);
    x->s[k] = in;
  }
  if (fill == 4 && i->sources >= 2 && i->s[0].dwords == i->s[1].dwords && i->s[0].type != MASK && i->s[1].type != MASK)
    for (u32 k = 0; k < 2; k++) { /* each as the other: two that may be equal, or equal to a constant */
      if (i->s[k].kind == LITERAL) continue;
      u32 room[4 * MAX_LANES], made[4 * MAX_LANES];
      u64 ignored = ~0ull;
      const u32 *u = fetch_row(w, i, k, room, &ignored, 1);
      for (u32 l = 0; l < n * i->s[k].dwords; l++) made[l] = (x->s[k][l] & ~u[l]) | (x->s[1 - k][l] & u[l]);
      memcpy(rooms->row[k], made, n * i->s[k].dwords * 4);
      x->s[k] = rooms->row[k];
    }
  if (i->flags & IMPLICIT_VCC) {
    u64 u = fill < 0 ? 0 : unwritten_mask(w, VCC), mask = mask_of(w, VCC);
    x->mask[3] = fill == 1 || fill == 3 ? mask | u : mask & ~u;
  }
  x->d = rooms->d;
  if ((i->flags & READS_D) && i->d.kind == VGPR)
    for (u32 d = 0; d < i->d.dwords; d++) {
      const u32 *in = row(w, i->d.index + d);
      u32 *out = rooms->d + d * n;
      if (is_half(i->d.type) && (i->d.modifiers & HIGH)) for (u32 l = 0; l < n; l++) out[l] = in[l] >> 16;
      else memcpy(out, in, n * 4);
      if (fill >= 0 && (w->lanes_v[i->d.index + d])) {
        const u32 *u = unwritten_row(w, i->d.index + d);
        int high = is_half(i->d.type) && (i->d.modifiers & HIGH);
        for (u32 l = 0; l < n; l++) out[l] = filled(out[l], high ? u[l] >> 16 : u[l], fill, i->d.index + d);
      }
    }
  if ((i->flags & READS_D) && (i->flags & FLOATS)) flush_in(w, &i->d, rooms->d, rooms->d);
  x->lanes = n;
  x->mode = w->mode;
  x->inst = i;
  x->out = 0;
  vector_ops[i->op](x);
  if ((i->flags & FLOATS) && (((w->mode & 0xf0) != 0xf0) || i->omod || (i->flags & CLAMP))) finish_floats(w, i, rooms->d);
  if (i->d.kind == VGPR && (is_half(i->d.type) || (i->flags & SDWA))) place_halves(w, i, rooms->d, row(w, i->d.index));
}

static void commit(Wave *w, const Inst *i, const u32 *d, u64 out, u64 mask, const u32 *unwritten, u64 unwritten_out, u64 exec) {
  u32 n = w->lanes;
  if (i->d.kind == VGPR)
    for (u32 k = 0; k < i->d.dwords; k++) {
      commit_row(w, i->d.index + k, d + k * n, mask);
      if (unwritten || (w->lanes_v[i->d.index + k] & mask)) mark_row(w, i->d.index + k, unwritten ? unwritten + k * n : 0, mask);
    }
  if (i->e.kind == SGPR) {
    write_mask(w, i->e.index, out & exec, unwritten_out & exec);
    if (i->e.index == EXEC && (unwritten_out & exec)) report(w, UNWRITTEN_EXEC, (u32)__builtin_ctzll(unwritten_out & exec), 0, 0);
    if (i->flags & TWO) write_mask(w, EXEC, out & exec, 0);
  }
}

static void run_vector(Wave *w, const Inst *i, int is_second) {
  Rooms *room = (Rooms *)w->machine->rooms + (is_second ? 2 : 0);
  Vector x;
  u64 exec = exec_of(w), valid = ~0ull;
  int unwritten = 0;
  if (w->machine->checks & CHECK_UNWRITTEN) {
    for (u32 k = 0; k < i->sources; k++) unwritten |= operand_unwritten(w, &i->s[k], i->flags & DPP ? ~0ull : exec);
    if (i->flags & IMPLICIT_VCC) unwritten |= (unwritten_mask(w, VCC) & exec) != 0;
    if ((i->flags & READS_D) || is_half(i->d.type) || (i->flags & PRESERVE)) unwritten |= i->d.kind == VGPR && operand_unwritten(w, &i->d, exec);
  }
  evaluate(w, i, &room[0], &x, &valid, -1);
  u64 out = x.out;
  if (!unwritten) { /* the second of a pair reads before the first is written */
    if (i->flags & DUAL) {
      run_vector(w, i + 1, 1);
      commit(w, i, room[0].d, out, exec & valid, 0, 0, exec);
      return;
    }
    commit(w, i, room[0].d, out, exec & valid, 0, 0, exec);
    return;
  }
  u32 differs[4 * MAX_LANES], n = w->lanes, size = n * (i->d.kind == VGPR ? i->d.dwords : 0);
  u64 out_differs = 0;
  u64 ignored = ~0ull;
  memset(differs, 0, sizeof differs);
  evaluate(w, i, &room[1], &x, &ignored, 0);
  u32 zeros[4 * MAX_LANES];
  memcpy(zeros, room[1].d, size * 4);
  u64 out_zeros = x.out;
  for (int fill = 1; fill < FILLS; fill++) {
    evaluate(w, i, &room[1], &x, &ignored, fill);
    for (u32 l = 0; l < size; l++) differs[l] |= room[1].d[l] ^ zeros[l];
    out_differs |= x.out ^ out_zeros;
  }
  if (i->flags & FLOATS) {
    u32 whole = is_half(i->d.type) ? 0xffff : ~0u;
    if (i->d.type == F16) { for (u32 l = 0; l < size; l++) { if (differs[l] & 0xffff) differs[l] |= 0xffff; if (differs[l] >> 16) differs[l] |= 0xffff0000u; } }
    else for (u32 l = 0; l < size; l++) if (differs[l]) differs[l] |= whole;
  }
  /* Bits of a half that is kept keep what is known of them. */
  if (i->d.kind == VGPR && (is_half(i->d.type) || (i->flags & PRESERVE)) && !(i->flags & ZERO_HIGH) && (w->lanes_v[i->d.index] & exec)) {
    const u32 *u = unwritten_row(w, i->d.index);
    u32 kept = i->d.modifiers & HIGH ? 0xffffu : 0xffff0000u;
    if (i->flags & SDWA) { /* with padding the whole register is written */
      u32 shift = i->d.select >= WORD_0 ? 16u * (i->d.select - WORD_0) : i->d.select ? 8u * (i->d.select - BYTE_0) : 0;
      u32 field = i->d.select >= WORD_0 ? 0xffffu << shift : i->d.select ? 0xffu << shift : ~0u;
      kept = i->flags & PRESERVE ? ~field : 0;
    }
    for (u32 l = 0; l < n; l++) differs[l] |= u[l] & kept;
  }
  if (i->flags & DUAL) {
    run_vector(w, i + 1, 1);
    commit(w, i, room[0].d, out, exec & valid, differs, out_differs, exec);
    return;
  }
  commit(w, i, room[0].d, out, exec & valid, differs, out_differs, exec);
}
