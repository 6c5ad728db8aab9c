/* Scalar arithmetic. */
#pragma once
#include "operands.h"

typedef void (*ScalarOp)(Scalar *);
extern const ScalarOp scalar_ops[];

static inline u64 scalar_value(const Wave *w, const Operand *o) {
  if (o->kind == LITERAL) return o->value;
  if (o->index == SCC) return w->s[SCC];
  if (o->modifiers) { /* of single precision only */
    u32 bits = w->s[o->index];
    if (o->modifiers & ABS) bits &= 0x7fffffffu;
    return o->modifiers & NEG ? bits ^ 0x80000000u : bits;
  }
  return o->dwords >= 2 ? w->s[o->index] | (u64)w->s[o->index + 1] << 32 : w->s[o->index];
}
static inline u64 scalar_unwritten(const Wave *w, const Operand *o) {
  if (o->kind != SGPR) return 0;
  return o->dwords >= 2 ? w->unwritten_s[o->index] | (u64)w->unwritten_s[o->index + 1] << 32 : w->unwritten_s[o->index];
}
static void scalar_write(Wave *w, const Operand *o, u64 value, u64 unwritten) {
  if (o->kind != SGPR || o->index == NULL_REGISTER) return;
  w->s[o->index] = (u32)value;
  w->unwritten_s[o->index] = (u32)unwritten;
  if (o->dwords >= 2) { w->s[o->index + 1] = (u32)(value >> 32); w->unwritten_s[o->index + 1] = (u32)(unwritten >> 32); }
  if (unwritten && (o->index == EXEC || (o->index == EXEC + 1 && w->lanes == 64)))
    report(w, UNWRITTEN_EXEC, (u32)__builtin_ctzll(unwritten), 0, 0);
}

static void run_scalar(Wave *w, const Inst *i) {
  Scalar x = {.inst = i, .pc = i->pc};
  u64 unwritten = 0, u[MAX_SOURCES];
  for (u32 k = 0; k < i->sources; k++) {
    x.s[k] = scalar_value(w, &i->s[k]);
    unwritten |= u[k] = scalar_unwritten(w, &i->s[k]);
  }
  x.d = i->d.kind == SGPR ? scalar_value(w, &i->d) : 0;
  x.scc = w->s[SCC];
  u64 old = x.d, old_u = i->d.kind == SGPR && (i->flags & READS_D) ? scalar_unwritten(w, &i->d) : 0;
  u32 scc_u = i->flags & READS_SCC ? w->unwritten_s[SCC] : 0;
  Scalar in = x;
  u64 exec = exec_of(w);
  if (i->e.kind == SGPR) { /* saveexec and wrexec: the old or new mask goes to d, exec is e */
    x.s[1] = exec;
  }
  in.s[1] = x.s[1];
  scalar_ops[i->op](&x);
  u64 differs = 0;
  u32 scc_differs = 0;
  if ((unwritten || old_u || scc_u) && (w->machine->checks & CHECK_UNWRITTEN)) {
    Scalar z[3];
    for (int fill = 0; fill < 3; fill++) {
      z[fill] = in;
      u64 pattern = fill == 0 ? 0 : fill == 1 ? ~0ull : 0x5a3c96f15a3c96f1ull;
      for (u32 k = 0; k < i->sources; k++) z[fill].s[k] = (in.s[k] & ~u[k]) | (pattern & u[k]);
      z[fill].d = (old & ~old_u) | (pattern & old_u);
      if (scc_u) z[fill].scc = fill & 1;
      scalar_ops[i->op](&z[fill]);
      differs |= z[fill].d ^ z[0].d;
      scc_differs |= z[fill].scc ^ z[0].scc;
    }
  }
  if (i->e.kind == SGPR) {
    u64 all = w->lanes == 64 ? ~0ull : 0xffffffffull, made = x.d & all;
    write_mask(w, EXEC, made, differs & all);
    if (differs & all) report(w, UNWRITTEN_EXEC, (u32)__builtin_ctzll(differs & all), 0, 0);
    scalar_write(w, &i->d, i->flags & TWO ? made : exec, 0);
    x.scc = made != 0;
  } else if (i->d.kind == SGPR)
    scalar_write(w, &i->d, x.d, differs);
  w->s[SCC] = x.scc;
  if (i->flags & WRITES_SCC) w->unwritten_s[SCC] = scc_differs;
}
