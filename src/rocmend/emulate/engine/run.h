/* Waves, barriers and the order in which they run. */
#pragma once
#include "lanes.h"
#include "matrix.h"
#include "scalar.h"
#include "vector.h"

enum { B_ALWAYS, B_SCC0, B_SCC1, B_VCCZ, B_VCCNZ, B_EXECZ, B_EXECNZ, B_SETPC, B_GETPC, B_SWAPPC, B_CALL };

static u32 instruction_at(const Machine *m, u64 pc) {
  u32 low = 0, high = m->instructions;
  while (low < high) {
    u32 middle = (low + high) / 2;
    if (m->code[middle].pc < pc) low = middle + 1; else high = middle;
  }
  return low < m->instructions && m->code[low].pc == pc ? low : ~0u;
}

/* One instruction of a wave: how a wave goes on after it. */
enum { GOES_ON, YIELDS, ENDS };

static void barrier_passed(Group *g) {
  g->barrier_epoch = ++g->epoch;
  g->arrived = 0;
  for (u32 k = 0; k < g->waves; k++) {
    Wave *o = &g->wave[k];
    if (!o->done && (o->machine->checks & CHECK_RACES)) carry_over(o);
    o->signalled = o->signalled == 1 && !o->waiting ? 2 : 0; /* signalled, not yet waiting: passes when it comes to wait */
    o->waiting = 0;
  }
}
static void arrive(Wave *w) {
  Group *g = w->group;
  if (g->arrived == 0) g->barrier_at = w->at;
  else if (g->barrier_at != w->at && (w->machine->checks & CHECK_PLACES)) report(w, BARRIER_DIFFERS, 0, w->machine->code[g->barrier_at].pc, 0);
  if (g->live < g->waves && (w->machine->checks & CHECK_BARRIERS)) report(w, BARRIER_ENDED, 0, w->machine->code[w->at].pc, g->waves - g->live);
  if (++g->arrived == g->live) barrier_passed(g);
}

static u64 code_address(const Machine *m, u32 pc);

static int step(Wave *w) {
  Machine *m = w->machine;
  const Inst *i = &m->code[w->at];
  u32 next = i->next;
  m->executed[w->at]++;
  m->active[w->at] += (u64)__builtin_popcountll(exec_of(w) & all_lanes(w));
  w->executed++;
  m->total++;
  u64 traced = exec_of(w);
  u32 traced_at = w->at;
  int result = GOES_ON;
  switch (i->form) {
    case F_VALU:
      if (anything_pending(w)) { use_operands(w, i); if (i->flags & DUAL) use_operands(w, i + 1); }
      run_vector(w, i, 0);
      break;
    case F_SALU:
      if (anything_pending(w)) use_operands(w, i);
      run_scalar(w, i);
      break;
    case F_SMEM: run_smem(w, i); break;
    case F_LDS: run_lds(w, i); break;
    case F_GLOBAL: case F_FLAT: case F_SCRATCH: run_global(w, i); break;
    case F_BUFFER: run_buffer(w, i); break;
    case F_MATRIX: run_matrix(w, i); break;
    case F_LANE: run_lanes(w, i); break;
    case F_BRANCH: {
      int taken = 1;
      u32 unwritten = 0;
      if (anything_pending(w) && (i->op == B_VCCZ || i->op == B_VCCNZ)) use_scalar(w, VCC, w->lanes / 32, 0);
      switch (i->op) {
        case B_SCC0: taken = !w->s[SCC]; unwritten = w->unwritten_s[SCC]; break;
        case B_SCC1: taken = w->s[SCC] != 0; unwritten = w->unwritten_s[SCC]; break;
        case B_VCCZ: taken = mask_of(w, VCC) == 0; unwritten = unwritten_mask(w, VCC) != 0; break;
        case B_VCCNZ: taken = mask_of(w, VCC) != 0; unwritten = unwritten_mask(w, VCC) != 0; break;
        case B_EXECZ: taken = exec_of(w) == 0; break;
        case B_EXECNZ: taken = exec_of(w) != 0; break;
        case B_GETPC: case B_CALL: case B_SWAPPC: case B_SETPC: {
          u64 after = i->op == B_CALL || i->op == B_SWAPPC || i->op == B_GETPC ? m->private_base * 0 + code_address(m, m->code[w->at].pc + i->bytes) : 0;
          u64 to = i->op == B_SETPC || i->op == B_SWAPPC ? scalar_value(w, &i->s[0]) : 0;
          if (i->op == B_GETPC || i->op == B_CALL || i->op == B_SWAPPC) scalar_write(w, &i->d, after, 0);
          if (i->op == B_GETPC) { taken = 0; break; }
          if (i->op == B_CALL) { next = (u32)i->target; taken = 0; break; }
          u32 at = instruction_at(m, to - code_address(m, 0));
          if (at == ~0u) { report(w, BAD_PC, 0, to, 0); w->done = 1; return ENDS; }
          next = at;
          taken = 0;
          break;
        }
        default: break;
      }
      if (unwritten && (m->checks & CHECK_UNWRITTEN)) report(w, UNWRITTEN_BRANCH, 0, 0, 0);
      if (taken) next = (u32)i->target;
      break;
    }
    case F_WAIT: /* s[k]: how many of counter k may be left, all where there is no literal */
      for (u32 k = 0; k < COUNTERS; k++) if (i->s[k].kind == LITERAL) wait_for(w, k, (u32)i->s[k].value);
      break;
    case F_BARRIER:
      if (i->op == 0) {
        w->waiting = 1;
        arrive(w);
      } else if (w->signalled == 2) w->signalled = 0;
      else w->waiting = 1; /* without a signal of its own for ever */
      if (w->waiting) result = YIELDS;
      break;
    case F_BARRIER_SIGNAL: {
      w->signalled = 1;
      arrive(w);
      break;
    }
    case F_SLEEP: w->asleep = 1; result = YIELDS; break;
    case F_HWREG: {
      u32 id = (u32)i->immediate & 63, offset = (u32)i->immediate >> 6 & 31, width = ((u32)i->immediate >> 11 & 31) + 1;
      u32 mask = (width == 32 ? ~0u : (1u << width) - 1) << offset;
      if (i->op == 0) { /* s_getreg: MODE is 1; what else there is reads as zero but for the group's waves */
        u32 value = id == 1 ? w->mode : 0;
        w->s[i->d.index] = (value & mask) >> offset;
        w->unwritten_s[i->d.index] = 0;
      } else if (i->op == 1) {
        u32 value = scalar32(w, &i->s[0]);
        if (id == 1) w->mode = (w->mode & ~mask) | (value << offset & mask);
      } else if (i->op == 2) w->mode = (w->mode & ~0xfu) | ((u32)i->immediate & 15);   /* s_round_mode */
      else w->mode = (w->mode & ~0xf0u) | ((u32)i->immediate & 15) << 4;               /* s_denorm_mode */
      break;
    }
    case F_TRAP: report(w, TRAPPED, 0, (u64)i->immediate, 0); w->done = 1; return ENDS;
    case F_END: w->done = 1; return ENDS;
    default: break;
  }
  if (m->trace) m->trace(w->group->number, w->number, traced_at, traced, w->v, w->s);
  if (next >= m->instructions) { report(w, BAD_PC, 0, 0, 1); w->done = 1; return ENDS; }
  w->at = next;
  return result;
}

static u64 code_address(const Machine *m, u32 pc) { return m->code_base + pc; }

static u64 random_of(Machine *m) {
  m->random ^= m->random << 13; m->random ^= m->random >> 7; m->random ^= m->random << 17;
  return m->random;
}

/* Run a workgroup until it ends or has executed `slice` instructions. Returns whether anything was executed. */
static int run_group(Machine *m, Group *g, u64 slice) {
  u64 before = m->total;
  while (!g->done && m->total - before < slice) {
    int ran = 0;
    for (u32 k = 0; k < g->waves && !g->done; k++) {
      u32 number = m->order == FORWARD ? k : m->order == REVERSE ? g->waves - 1 - k : (u32)(random_of(m) % g->waves);
      Wave *w = &g->wave[number];
      if (w->done || w->waiting) continue;
      ran = 1;
      w->asleep = 0;
      u64 quantum = m->order == SHUFFLED ? 1 + random_of(m) % 256 : m->quantum;
      int result = GOES_ON;
      while (result == GOES_ON && quantum--) result = step(w);
      if (result == ENDS) {
        if (g->arrived && g->live > 1 && (m->checks & CHECK_BARRIERS)) report(w, BARRIER_ENDED, 0, m->code[g->barrier_at].pc, g->arrived);
        g->live--;
        if (!g->live) g->done = 1;
        else if (g->arrived && g->arrived == g->live) barrier_passed(g); /* hardware counts those that are left */
      }
      if (m->total - before >= slice) break;
    }
    if (ran) continue;
    int waiting = 0; /* a shuffled order may only have missed the wave that can go on */
    for (u32 k = 0; k < g->waves; k++) waiting |= !g->wave[k].done && !g->wave[k].waiting;
    if (waiting) continue;
    for (u32 k = 0; k < g->waves; k++) if (!g->wave[k].done) { report(&g->wave[k], STUCK, 0, 0, g->arrived); break; }
    g->done = 1;
    return 1;
  }
  return m->total != before;
}
