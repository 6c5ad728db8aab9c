/* Loads, stores and atomics: global, flat, buffer, scratch, LDS and scalar; bounds, races, waits. */
#pragma once
#include "operands.h"

enum { PRIVATE_MEMORY = 1, SHARED_MEMORY = 2 };

/* Counters */
static void complete(Wave *w, u32 counter, u32 left);

static void track(Wave *w, u32 counter, int scalar, u32 first, u32 dwords) {
  if (counter >= COUNTERS) return;
  if (w->outstanding[counter] == QUEUE) complete(w, counter, QUEUE - 1); /* the hardware's counter is not longer either */
  u32 at = (w->head[counter] + w->outstanding[counter]++) % QUEUE;
  if (counter == C_LDS) w->lds_access[at].exec = 0;
  w->queue[counter][at] = (Pending){(u8)counter, (u8)scalar, (u8)dwords, 0, (u16)first};
  if (!(w->machine->checks & CHECK_WAITS)) return;
  for (u32 k = 0; k < dwords; k++)
    if (scalar) { if (first + k < SGPRS) w->pending_s[first + k] |= (u8)(1u << counter); }
    else w->pending_v[first + k] |= (u8)(1u << counter);
  if (scalar) w->scalar_in_flight++;
}
static void complete(Wave *w, u32 counter, u32 left) {
  while (w->outstanding[counter] > left) {
    Pending p = w->queue[counter][w->head[counter]];
    w->head[counter] = (w->head[counter] + 1) % QUEUE;
    w->outstanding[counter]--;
    if (p.scalar && w->scalar_in_flight) w->scalar_in_flight--;
    for (u32 k = 0; k < p.dwords; k++) {
      int again = 0; /* a later access to the same register is still under way */
      for (u32 q = 0; q < w->outstanding[counter] && !again; q++) {
        Pending *o = &w->queue[counter][(w->head[counter] + q) % QUEUE];
        again = o->scalar == p.scalar && p.first + k >= o->first && p.first + k < (u32)o->first + o->dwords;
      }
      if (again) continue;
      if (p.scalar) { if (p.first + k < SGPRS) w->pending_s[p.first + k] &= (u8)~(1u << counter); }
      else w->pending_v[p.first + k] &= (u8)~(1u << counter);
    }
  }
}
/* Scalar loads come back in any order: with one under way, only a wait for none says anything. */
static void wait_for(Wave *w, u32 counter, u32 left) {
  if (left && w->scalar_in_flight && (counter == C_SCALAR || (counter == C_LDS && w->machine->generation < GFX12))) return;
  complete(w, counter, left);
}

/* Global memory */
static Allocation *find(Machine *m, u64 address) {
  if (m->last < m->allocations) {
    Allocation *a = &m->allocation[m->last];
    if (address - a->base < a->size) return a;
  }
  u32 low = 0, high = m->allocations;
  while (low < high) {
    u32 middle = (low + high) / 2;
    Allocation *a = &m->allocation[middle];
    if (address < a->base) high = middle;
    else if (address - a->base >= a->size) low = middle + 1;
    else { m->last = middle; return a; }
  }
  return 0;
}
/* The clock of an address that atomics use. Past a gigabyte of clocks addresses share one: less is found, nothing invented. */
static u32 *sync_at(Machine *m, u64 address, int make) {
  if (!m->sync_room && !make) return 0;
  if (2 * m->syncs >= m->sync_room) {
    u32 room = m->sync_room ? 2 * m->sync_room : 64;
    Sync *table = calloc(room, sizeof(Sync));
    for (u32 k = 0; k < m->sync_room; k++)
      if (m->sync[k].clock) {
        u32 at = (u32)(m->sync[k].address * 0x9e3779b97f4a7c15ull >> 32) & (room - 1);
        while (table[at].clock) at = (at + 1) & (room - 1);
        table[at] = m->sync[k];
      }
    free(m->sync);
    m->sync = table;
    m->sync_room = room;
  }
  u32 at = (u32)(address * 0x9e3779b97f4a7c15ull >> 32) & (m->sync_room - 1);
  for (; m->sync[at].clock; at = (at + 1) & (m->sync_room - 1)) if (m->sync[at].address == address) return m->sync[at].clock;
  if (!make) return 0;
  if (m->shared_clock) return m->shared_clock;
  u32 *clock = calloc(m->groups, 4);
  if ((u64)m->syncs * m->groups * 4 > 1ull << 30) return m->shared_clock = clock;
  m->sync[at] = (Sync){address, clock};
  m->syncs++;
  return clock;
}
static void acquire(Wave *w, const u32 *clock) {
  Group *g = w->group;
  if (!g->clock) g->clock = calloc(w->machine->groups, 4);
  for (u32 k = 0; k < w->machine->groups; k++) if (clock[k] > g->clock[k]) g->clock[k] = clock[k];
}
static void release(Wave *w, u32 *clock) {
  Group *g = w->group;
  if (g->clock) for (u32 k = 0; k < w->machine->groups; k++) if (g->clock[k] > clock[k]) clock[k] = g->clock[k];
  g->epoch++;
  if (g->epoch > clock[g->number]) clock[g->number] = g->epoch;
}
/* An access: several unordered readers (1 bit), 1 + workgroup (26), wave (5), epoch (31), atomic (1). */
#define SEVERAL (1ull << 63)
static inline u64 access_of(const Wave *w, int atomic) {
  return (u64)(w->group->number + 1) << 37 | (u64)w->number << 32 | (u64)(w->group->epoch & 0x7fffffff) << 1 | (u64)atomic;
}
static int ordered(const Wave *w, u64 access) {
  u32 group = (u32)(access >> 37 & 0x3ffffff) - 1, epoch = (u32)access >> 1;
  const Group *g = w->group;
  if (group == g->number) return 1; /* waves of a workgroup may compute the same twice, as Triton has them do */
  return g->clock && g->clock[group] > epoch;
}
/* `value`: what a store is about to write; two that write the same are no race. */
static void race_global(Wave *w, Allocation *a, u64 address, u32 bytes, int store, int atomic, u32 lane, const u8 *value) {
  u64 at = address - a->base, mine = access_of(w, atomic);
  for (u64 k = at; k < at + bytes; k++) {
    u64 wrote = a->writer[k], read = store ? a->reader[k] : 0;
    if (wrote && !ordered(w, wrote)) {
      if (atomic && !(wrote & 1)) { /* it sees what another stored: what that did before is known, too */
        Group *g = w->group;
        u32 other = (u32)(wrote >> 37 & 0x3ffffff) - 1, epoch = (u32)wrote >> 1;
        if (!g->clock) g->clock = calloc(w->machine->groups, 4);
        g->clock[other] = MAX(g->clock[other], epoch + 1);
      } else if (!atomic && !(wrote & 1) && !(value && value[k - at] == a->host[k])) { report(w, GLOBAL_RACE, lane, address, (u32)(wrote >> 37 & 0x3ffffff) - 1); break; }
    }
    if (read && !atomic && !(read & 1) && ((read & SEVERAL) || !ordered(w, read))) { report(w, GLOBAL_RACE, lane, address, (u32)(read >> 37 & 0x3ffffff) - 1); break; }
  }
  for (u64 k = at; k < at + bytes; k++) {
    if (store) { a->writer[k] = mine; if (!atomic) a->reader[k] = 0; }
    if (store && !atomic) continue;
    u64 other = a->reader[k]; /* of another workgroup, and nothing orders the two: a later write races with one of them */
    if (other && !(mine & other & 1) && (other >> 37 & 0x3ffffff) != w->group->number + 1 && !ordered(w, other)) a->reader[k] = mine | SEVERAL;
    else a->reader[k] = mine | (other & SEVERAL);
  }
}
/* The bytes behind an address, or null where there are none; `*unwritten` gets their shadow. */
static u8 *global_at(Wave *w, u64 address, u32 bytes, int store, int atomic, u32 lane, u8 **unwritten, const u8 *value) {
  Machine *m = w->machine;
  Allocation *a = find(m, address);
  *unwritten = 0;
  if (!a || address - a->base + bytes > a->size) { report(w, BAD_ADDRESS, lane, address, bytes | (u32)store << 8 | (u32)(atomic == 1) << 9); return 0; }
  if (!a->host) { report(w, ASKS_HOST, lane, address, 0); m->budget = 0; return 0; } /* nobody there would answer */
  if (store && a->read_only) { report(w, READ_ONLY, lane, address, bytes); return 0; }
  if (atomic == 1 && address % bytes) report(w, MISALIGNED, lane, address, bytes);
  if (a->writer && (m->checks & CHECK_RACES)) race_global(w, a, address, bytes, store, atomic != 0, lane, value);
  if (store) a->stores++;
  if (a->unwritten) *unwritten = a->unwritten + (address - a->base);
  return a->host + (address - a->base);
}

/* LDS */
static u8 *lds_at(Wave *w, u32 address, u32 bytes, int store, int atomic, u32 lane, u8 **unwritten, const u8 *value) {
  Machine *m = w->machine;
  Group *g = w->group;
  *unwritten = 0;
  if (address >= m->lds_bytes || bytes > m->lds_bytes - address) { report(w, LDS_BOUNDS, lane, address, bytes | (u32)store << 8); return 0; }
  if (atomic && address % bytes) report(w, MISALIGNED, lane, address, bytes);
  if (m->checks & CHECK_RACES)
    for (u32 k = address; k < address + bytes; k++) {
      u64 wrote = g->lds_writer[k], read = g->lds_reader[k], now = g->barrier_epoch;
      if (wrote && (wrote >> 8) == now && (wrote & 31) != w->number && !(atomic && (wrote & 64)) && !(value && value[k - address] == g->lds[k])) { report(w, LDS_RACE, lane, k, wrote & 31); break; }
      if (store && (read >> 32) == now && (read & 0xffffffffu & ~(1ull << w->number)) && !(atomic && (wrote & 64) && (wrote >> 8) == now)) {
        report(w, LDS_RACE, lane, k, (u32)__builtin_ctzll(read & 0xffffffffu & ~(1ull << w->number)) | 256);
        break;
      }
      if (store) g->lds_writer[k] = now << 8 | 128 | (atomic ? 64 : 0) | w->number;
      if (!store) g->lds_reader[k] = (read >> 32) == now ? read | 1ull << w->number : now << 32 | 1ull << w->number;
    }
  *unwritten = g->unwritten_lds + address;
  return g->lds + address;
}

/* Where loads that go to the LDS begin: M0, of which 160 KiB need more than 16 bits. */
static u32 lds_base(Wave *w) {
  if ((w->machine->checks & CHECK_UNWRITTEN) && w->unwritten_s[M0]) report(w, UNWRITTEN_ADDRESS, 0, M0, 0);
  return w->s[M0] & 0x3ffff;
}

/* What a lane's access is to, as an address in one of four memories. */
static u8 *place(Wave *w, const Inst *i, int memory, u64 address, u32 bytes, int store, int atomic, u32 lane, u8 **unwritten, const u8 *value) {
  Machine *m = w->machine;
  if (memory == F_FLAT) {
    if (address >> 32 == m->shared_base >> 32) { memory = F_LDS; address &= 0xffffffffu; }
    else if (address >> 32 == m->private_base >> 32) { memory = F_SCRATCH; address &= 0xffffffffu; }
  }
  if (memory == F_LDS) return lds_at(w, (u32)address, bytes, store, atomic, lane, unwritten, value);
  if (memory == F_SCRATCH) {
    *unwritten = 0;
    if (address >= m->scratch_bytes || bytes > m->scratch_bytes - address) { report(w, SCRATCH_BOUNDS, lane, address, bytes | (u32)store << 8); return 0; }
    *unwritten = w->unwritten_scratch + (size_t)lane * m->scratch_bytes + address;
    return w->scratch + (size_t)lane * m->scratch_bytes + address;
  }
  int coherent = (i->flags & COHERENT) && !atomic && m->groups > 1; /* a flag, which atomics may use, too */
  u32 *clock = coherent && bytes >= 4 ? sync_at(m, address, store && m->syncs < 4096) : 0;
  if (clock && !store) acquire(w, clock);
  u8 *at = global_at(w, address, bytes, store, atomic ? 1 : coherent ? 2 : 0, lane, unwritten, value);
  if (clock && store) release(w, clock);
  return at;
}

static void load_lane(Wave *w, const Inst *i, int memory, u64 address, u32 lane, u32 first, u32 bytes) {
  u8 *unwritten, *from = place(w, i, memory, address, bytes, 0, 0, lane, &unwritten, 0);
  u32 n = w->lanes, value = 0, u = 0;
  if (bytes < 4 || (i->flags & (D16_LOW | D16_HIGH))) {
    if (from) { memcpy(&value, from, bytes); if (unwritten) memcpy(&u, unwritten, bytes); }
    else value = 0xdeadbeefu & ((1ull << 8 * bytes) - 1);
    if (i->flags & SIGNED) {
      value = bytes == 1 ? (u32)(i32)(i8)value : (u32)(i32)(i16)value;
      u = bytes == 1 ? (u32)(i32)(i8)u : (u32)(i32)(i16)u;
    }
    u32 *out = &row(w, first)[lane], old_u = w->lanes_v[first] >> lane & 1 ? unwritten_row(w, first)[lane] : 0;
    int lost = (i->flags & LOSES_HALF) != 0; /* with ECC of the registers the other half does not survive */
    if (i->flags & D16_HIGH) { value = (lost ? 0 : *out & 0xffff) | value << 16; u = (lost ? 0xffff : old_u & 0xffff) | u << 16; }
    else if (i->flags & D16_LOW) { value = (lost ? 0 : *out & 0xffff0000u) | (value & 0xffff); u = (lost ? 0xffff0000u : old_u & 0xffff0000u) | (u & 0xffff); }
    *out = value;
    if (u | old_u) { unwritten_row(w, first)[lane] = u; w->lanes_v[first] = u ? w->lanes_v[first] | 1ull << lane : w->lanes_v[first] & ~(1ull << lane); }
    else w->lanes_v[first] &= ~(1ull << lane);
    return;
  }
  for (u32 d = 0; d < bytes / 4; d++) {
    value = 0xdeadbeefu; u = 0;
    if (from) { memcpy(&value, from + 4 * d, 4); if (unwritten) memcpy(&u, unwritten + 4 * d, 4); }
    row(w, first + d)[lane] = value;
    if (u) { unwritten_row(w, first + d)[lane] = u; w->lanes_v[first + d] |= 1ull << lane; }
    else if (w->lanes_v[first + d] >> lane & 1) { if (w->unwritten_v) unwritten_row(w, first + d)[lane] = 0; w->lanes_v[first + d] &= ~(1ull << lane); }
  }
}
static void store_lane(Wave *w, const Inst *i, int memory, u64 address, u32 lane, u32 first, u32 bytes) {
  u32 value[4], u[4], any = 0;
  for (u32 d = 0; d < (bytes + 3) / 4; d++) {
    u32 k = first + d;
    value[d] = row(w, k)[lane];
    u[d] = w->lanes_v[k] >> lane & 1 ? unwritten_row(w, k)[lane] : 0;
    if (i->flags & D16_HIGH) { value[d] >>= 16; u[d] >>= 16; }
    if (bytes < 4) u[d] &= (1u << 8 * bytes) - 1;
    any |= u[d];
  }
  u8 *unwritten, *to = place(w, i, memory, address, bytes, 1, 0, lane, &unwritten, (const u8 *)value);
  if (!to) return;
  memcpy(to, value, bytes);
  if (unwritten) memcpy(unwritten, u, bytes);
  if (!any || !(w->machine->checks & CHECK_STORES)) return;
  int global = memory == F_GLOBAL || memory == F_BUFFER || (memory == F_FLAT && address >> 32 != w->machine->shared_base >> 32 && address >> 32 != w->machine->private_base >> 32);
  if (global) report(w, UNWRITTEN_STORE, lane, address, first);
}

/* Atomics */
enum { A_SWAP, A_CMPSWAP, A_ADD, A_SUB, A_RSUB, A_SMIN, A_UMIN, A_SMAX, A_UMAX, A_AND, A_OR, A_XOR, A_INC, A_DEC, A_ADD_F, A_MIN_F, A_MAX_F, A_PK_ADD_F16, A_PK_ADD_BF16, A_SUB_CLAMP, A_COND_SUB };

static u64 combined(u32 op, u64 old, u64 value, u64 compare, u32 bytes) {
  if (bytes == 4) {
    u32 o = (u32)old, v = (u32)value;
    switch (op) {
      case A_SWAP: return v;
      case A_CMPSWAP: return o == (u32)compare ? v : o;
      case A_ADD: return o + v;
      case A_SUB: return o - v;
      case A_RSUB: return v - o;
      case A_SMIN: return (i32)o < (i32)v ? o : v;
      case A_UMIN: return o < v ? o : v;
      case A_SMAX: return (i32)o > (i32)v ? o : v;
      case A_UMAX: return o > v ? o : v;
      case A_AND: return o & v;
      case A_OR: return o | v;
      case A_XOR: return o ^ v;
      case A_INC: return o >= v ? 0 : o + 1;
      case A_DEC: return o == 0 || o > v ? v : o - 1;
      case A_SUB_CLAMP: return o < v ? 0 : o - v;
      case A_COND_SUB: return o >= v ? o - v : o;
      case A_ADD_F: return of_f32(as_f32(o) + as_f32(v));
      case A_MIN_F: return of_f32(min_f32(as_f32(v), as_f32(o)));
      case A_MAX_F: return of_f32(max_f32(as_f32(v), as_f32(o)));
      case A_PK_ADD_F16: return of_f16((f64)as_f16(o & 0xffff) + as_f16(v & 0xffff)) | of_f16((f64)as_f16(o >> 16) + as_f16(v >> 16)) << 16;
      case A_PK_ADD_BF16: return of_bf16(as_bf16(o & 0xffff) + as_bf16(v & 0xffff)) | of_bf16(as_bf16(o >> 16) + as_bf16(v >> 16)) << 16;
      default: return o;
    }
  }
  switch (op) {
    case A_SWAP: return value;
    case A_CMPSWAP: return old == compare ? value : old;
    case A_ADD: return old + value;
    case A_SUB: return old - value;
    case A_RSUB: return value - old;
    case A_SUB_CLAMP: return old < value ? 0 : old - value;
    case A_COND_SUB: return old >= value ? old - value : old;
    case A_SMIN: return (i64)old < (i64)value ? old : value;
    case A_UMIN: return old < value ? old : value;
    case A_SMAX: return (i64)old > (i64)value ? old : value;
    case A_UMAX: return old > value ? old : value;
    case A_AND: return old & value;
    case A_OR: return old | value;
    case A_XOR: return old ^ value;
    case A_INC: return old >= value ? 0 : old + 1;
    case A_DEC: return old == 0 || old > value ? value : old - 1;
    case A_ADD_F: return of_f64(as_f64(old) + as_f64(value));
    case A_MIN_F: return of_f64(min_f64(as_f64(old), as_f64(value)));
    case A_MAX_F: return of_f64(max_f64(as_f64(old), as_f64(value)));
    default: return old;
  }
}
static void atomic_lane(Wave *w, const Inst *i, int memory, u64 address, u32 lane, u32 out, u32 data) {
  u32 bytes = i->bytes, words = bytes / 4;
  u8 *unwritten, *at = place(w, i, memory, address, bytes, 1, 1, lane, &unwritten, 0);
  if (!at) { if (i->flags & RETURNS) for (u32 d = 0; d < words; d++) row(w, out + d)[lane] = 0xdeadbeefu; return; }
  int global = at < w->group->lds || at >= w->group->lds + w->machine->lds_bytes;
  if (global && memory != F_LDS && w->machine->groups > 1 && (w->machine->checks & CHECK_RACES)) {
    u32 *clock = sync_at(w->machine, address, 1);
    acquire(w, clock);
    release(w, clock);
  }
  u64 old = 0, value = 0, compare = 0;
  memcpy(&old, at, bytes);
  u32 u = 0;
  for (u32 d = 0; d < words; d++) {
    value |= (u64)row(w, data + d)[lane] << 32 * d;
    if (w->lanes_v[data + d] >> lane & 1) u |= unwritten_row(w, data + d)[lane];
    if (i->op == A_CMPSWAP) compare |= (u64)row(w, i->s[4].index + d)[lane] << 32 * d;
  }
  u64 made = combined(i->op, old, value, compare, bytes);
  memcpy(at, &made, bytes);
  u64 before = 0; /* what was there enters the result, but for a swap */
  if (unwritten) memcpy(&before, unwritten, bytes);
  int doubtful = u || (before && i->op != A_SWAP);
  if (doubtful && global && (w->machine->checks & CHECK_STORES)) report(w, UNWRITTEN_STORE, lane, address, data);
  if (i->flags & RETURNS)
    for (u32 d = 0; d < words; d++) {
      u32 was = 0;
      if (unwritten) memcpy(&was, unwritten + 4 * d, 4);
      row(w, out + d)[lane] = (u32)(old >> 32 * d);
      if (was) { unwritten_row(w, out + d)[lane] = was; w->lanes_v[out + d] |= 1ull << lane; }
      else { if (w->unwritten_v) unwritten_row(w, out + d)[lane] = 0; w->lanes_v[out + d] &= ~(1ull << lane); }
    }
  if (unwritten) memset(unwritten, doubtful ? 0xff : 0, bytes);
}

/* Addresses of vector memory. Layout of operands: s[0] address, s[1] data, s[2] scalar base or resource, s[3] offset. */
static void check_address(Wave *w, const Operand *o, u64 exec) {
  if (!(w->machine->checks & CHECK_UNWRITTEN) || !operand_unwritten(w, o, exec)) return;
  u32 lane = 0;
  if (o->kind == VGPR) {
    u64 bad = 0;
    for (u32 k = 0; k < o->dwords; k++) bad |= w->lanes_v[o->index + k];
    lane = (u32)__builtin_ctzll(bad & exec);
  }
  report(w, UNWRITTEN_ADDRESS, lane, o->index, o->kind);
}
static u32 scalar32(const Wave *w, const Operand *o) { return o->kind == SGPR ? w->s[o->index] : o->kind == LITERAL ? (u32)o->value : 0; }

/* Words of a row of lanes between registers and memory that was checked already; 0: some of it was never written. */
static int move_rows(Wave *w, const Inst *i, u8 *base, u8 *unwritten, const u64 *offset, u64 exec, u32 first) {
  u32 n = w->lanes, words = i->bytes / 4;
  for (u32 d = 0; d < words; d++) {
    u32 *r = row(w, first + d), any = 0;
    if (i->flags & STORE) {
      if (w->lanes_v[first + d] & exec) return 0;
      continue;
    }
    (void)r;
    if (unwritten) for (u32 l = 0; l < n; l++) if (exec >> l & 1) { u32 u; memcpy(&u, unwritten + offset[l] + 4 * d, 4); any |= u; }
    if (any) return 0;
  }
  for (u32 d = 0; d < words; d++) {
    u32 *r = row(w, first + d);
    if (i->flags & STORE) {
      for (u32 l = 0; l < n; l++) if (exec >> l & 1) { memcpy(base + offset[l] + 4 * d, &r[l], 4); if (unwritten) memset(unwritten + offset[l] + 4 * d, 0, 4); }
    } else {
      for (u32 l = 0; l < n; l++) if (exec >> l & 1) memcpy(&r[l], base + offset[l] + 4 * d, 4);
      if (w->lanes_v[first + d] & exec) mark_row(w, first + d, 0, exec);
    }
  }
  return 1;
}
static inline int plain_words(const Inst *i) { return i->bytes >= 4 && !(i->flags & (ATOMIC | TO_LDS | D16_LOW | D16_HIGH)); }
static int extent(const u64 *address, u64 exec, u32 n, u64 *low, u64 *high) {
  u64 least = ~0ull, most = 0;
  for (u32 l = 0; l < n; l++) if (exec >> l & 1) { least = MIN(least, address[l]); most = MAX(most, address[l]); }
  *low = least; *high = most;
  return least <= most;
}
/* The common case of a whole wave's access: all in one buffer whose races nobody looks for. 0: lane by lane, please. */
static int bulk_global(Wave *w, const Inst *i, const u64 *address, u64 exec) {
  Machine *m = w->machine;
  u64 low, high, offset[MAX_LANES];
  if (!plain_words(i) || (i->flags & COHERENT) || !extent(address, exec, w->lanes, &low, &high)) return 0;
  Allocation *a = find(m, low);
  if (!a || !a->host || high - a->base + i->bytes > a->size || (a->writer && (m->checks & CHECK_RACES)) || ((i->flags & STORE) && a->read_only)) return 0;
  for (u32 l = 0; l < w->lanes; l++) offset[l] = address[l] - a->base;
  return move_rows(w, i, a->host, a->unwritten, offset, exec, i->flags & STORE ? i->s[1].index : i->d.index);
}
static inline int all_four(const u64 *x) { return x[0] == x[1] && x[1] == x[2] && x[2] == x[3]; }
/* The same in the LDS, where the last access to each word was this wave's or lies before the last barrier. */
static int bulk_lds(Wave *w, const Inst *i, const u64 *address, u64 exec) {
  Machine *m = w->machine;
  Group *g = w->group;
  u64 low, high, now = g->barrier_epoch, bit = 1ull << w->number;
  int store = (i->flags & STORE) != 0;
  if (!plain_words(i) || !extent(address, exec, w->lanes, &low, &high) || high + i->bytes > m->lds_bytes) return 0;
  for (u32 l = 0; l < w->lanes; l++) if ((exec >> l & 1) && address[l] % 4) return 0;
  if (m->checks & CHECK_RACES) {
    for (u32 l = 0; l < w->lanes; l++) {
      if (!(exec >> l & 1)) continue;
      for (u64 k = address[l]; k < address[l] + i->bytes; k += 4) {
        u64 wrote = g->lds_writer[k], read = g->lds_reader[k];
        if (!all_four(g->lds_writer + k) || !all_four(g->lds_reader + k)) return 0;
        if (wrote >> 8 == now && (wrote & 31) != w->number) return 0;
        if (store && read >> 32 == now && (read & 0xffffffffu & ~bit)) return 0;
      }
    }
    u64 mine = now << 8 | 128 | w->number;
    for (u32 l = 0; l < w->lanes; l++) {
      if (!(exec >> l & 1)) continue;
      for (u64 k = address[l]; k < address[l] + i->bytes; k += 4)
        if (store) for (int b = 0; b < 4; b++) g->lds_writer[k + b] = mine;
        else {
          u64 read = g->lds_reader[k], made = read >> 32 == now ? read | bit : now << 32 | bit;
          for (int b = 0; b < 4; b++) g->lds_reader[k + b] = made;
        }
    }
  }
  return move_rows(w, i, g->lds, g->unwritten_lds, address, exec, store ? i->s[1].index : i->d.index);
}

static void start(Wave *w, const Inst *i) {
  if (anything_pending(w)) {
    for (u32 k = 0; k < i->sources; k++) {
      if (i->s[k].kind == VGPR) use_vector(w, i->s[k].index, i->s[k].dwords, 0, 0);
      else if (i->s[k].kind == SGPR) use_scalar(w, i->s[k].index, i->s[k].dwords, 0);
    }
    /* accesses of one counter come back in order: a register may be the target of several */
    if (i->d.kind == VGPR) use_vector(w, i->d.index, i->d.dwords, 1, 1u << i->counter);
  }
}

static void run_global(Wave *w, const Inst *i) { /* global, flat, scratch */
  u64 exec = exec_of(w), base = 0;
  u32 n = w->lanes;
  int memory = i->form;
  const Operand *a = &i->s[0], *b = &i->s[2];
  start(w, i);
  check_address(w, a, exec);
  if (b->kind == SGPR) { check_address(w, b, exec); base = b->dwords == 2 ? w->s[b->index] | (u64)w->s[b->index + 1] << 32 : w->s[b->index]; }
  const u32 *low = a->kind == VGPR ? row(w, a->index) : 0, *high = a->kind == VGPR && a->dwords == 2 ? row(w, a->index + 1) : 0;
  u64 addresses[MAX_LANES];
  for (u32 l = 0; l < n; l++) addresses[l] = ((low ? low[l] : 0) | (high ? (u64)high[l] << 32 : 0)) + base + (u64)(i64)i->immediate;
  for (u32 l = memory == F_GLOBAL && bulk_global(w, i, addresses, exec) ? n : 0; l < n; l++) {
    if (!(exec >> l & 1)) continue;
    u64 address = memory == F_SCRATCH ? (u32)addresses[l] : addresses[l];
    if (i->flags & ATOMIC) atomic_lane(w, i, memory, address, l, i->d.index, i->s[1].index);
    else if (i->flags & STORE) store_lane(w, i, memory, address, l, i->s[1].index, i->bytes);
    else if (i->flags & TO_LDS) {
      u8 *u, *v, *from = place(w, i, memory, address, i->bytes, 0, 0, l, &u, 0);
      u8 *to = lds_at(w, lds_base(w) + (u32)i->s[3].value + l * MAX(4, i->bytes), i->bytes, 1, 0, l, &v, 0);
      if (from && to) { memcpy(to, from, i->bytes); if (u) memcpy(v, u, i->bytes); else memset(v, 0, i->bytes); }
    } else load_lane(w, i, memory, address, l, i->d.index, i->bytes);
  }
  track(w, i->counter, 0, i->d.index, i->d.kind == VGPR ? i->d.dwords : 0);
  if (i->form == F_FLAT && w->machine->generation >= GFX9) track(w, C_LDS, 0, i->d.index, i->d.kind == VGPR ? i->d.dwords : 0);
}

static void run_buffer(Wave *w, const Inst *i) {
  u64 exec = exec_of(w);
  u32 n = w->lanes;
  const Operand *a = &i->s[0], *r = &i->s[2];
  start(w, i);
  check_address(w, a, exec);
  check_address(w, r, exec);
  check_address(w, &i->s[3], exec);
  u64 base = (w->s[r->index] | (u64)w->s[r->index + 1] << 32) & 0xffffffffffffull;
  u32 word1 = w->s[r->index + 1], records = w->s[r->index + 2], word3 = w->s[r->index + 3];
  u32 stride = word1 >> 16 & 0x3fff, soffset = scalar32(w, &i->s[3]);
  int swizzled = w->machine->generation >= GFX11 ? (word1 >> 30) != 0 : word1 >> 31, thread = word3 >> 23 & 1;
  for (u32 l = 0; l < n; l++) {
    if (!(exec >> l & 1)) continue;
    u32 index = 0, offset = (u32)i->immediate, at = a->index;
    if (i->flags & IDXEN) index = row(w, at++)[l];
    if (i->flags & OFFEN) offset += row(w, at)[l];
    if (swizzled && thread && w->scratch) { /* the private segment: interleaved by lane, one lane's bytes here */
      u64 address = (u64)offset + soffset / w->lanes; /* the scalar offset counts the bytes of the whole wave */
      if (i->flags & STORE) store_lane(w, i, F_SCRATCH, address, l, i->s[1].index, i->bytes);
      else load_lane(w, i, F_SCRATCH, address, l, i->d.index, i->bytes);
      continue;
    }
    if (thread) index += l;
    int structured = stride && ((i->flags & IDXEN) || thread);
    u64 address = base + soffset + offset + (u64)stride * index;
    int beyond = structured ? index >= records || (swizzled && offset >= stride) : records < i->bytes || offset > records - i->bytes;
    if (beyond) { /* the resource says so: loads give zero, stores do nothing */
      if (!structured && i->bytes > 4 && offset < records && !(i->flags & (ATOMIC | TO_LDS))) {
        Inst part = *i; /* each dword is checked for itself */
        part.bytes = 4;
        for (u32 d = 0; d < i->bytes / 4; d++) {
          if (offset + 4 * d + 4 <= records) {
            if (i->flags & STORE) store_lane(w, &part, F_BUFFER, address + 4 * d, l, i->s[1].index + d, 4);
            else load_lane(w, &part, F_BUFFER, address + 4 * d, l, i->d.index + d, 4);
          } else if (!(i->flags & STORE)) { row(w, i->d.index + d)[l] = 0; w->lanes_v[i->d.index + d] &= ~(1ull << l); if (w->unwritten_v) unwritten_row(w, i->d.index + d)[l] = 0; }
        }
        continue;
      }
      if (i->flags & TO_LDS) {
        u8 *v, *to = lds_at(w, lds_base(w) + (u32)i->immediate + l * MAX(4, i->bytes), i->bytes, 1, 0, l, &v, 0);
        if (to) { memset(to, 0, i->bytes); memset(v, 0, i->bytes); }
      } else if (i->d.kind == VGPR)
        for (u32 d = 0; d < i->d.dwords; d++) {
          u32 *out = &row(w, i->d.index + d)[l], keep = i->flags & D16_HIGH ? 0xffff : i->flags & D16_LOW ? 0xffff0000u : 0;
          *out &= keep;
          if (!keep) { w->lanes_v[i->d.index + d] &= ~(1ull << l); if (w->unwritten_v) unwritten_row(w, i->d.index + d)[l] = 0; }
          else if (w->lanes_v[i->d.index + d] >> l & 1) { u32 *u = &unwritten_row(w, i->d.index + d)[l]; *u &= keep; if (!*u) w->lanes_v[i->d.index + d] &= ~(1ull << l); }
        }
      continue;
    }
    if (i->flags & ATOMIC) atomic_lane(w, i, F_BUFFER, address, l, i->d.index, i->s[1].index);
    else if (i->flags & STORE) store_lane(w, i, F_BUFFER, address, l, i->s[1].index, i->bytes);
    else if (i->flags & TO_LDS) {
      u8 *u, *v, *from = place(w, i, F_BUFFER, address, i->bytes, 0, 0, l, &u, 0);
      u8 *to = lds_at(w, lds_base(w) + (u32)i->immediate + l * MAX(4, i->bytes), i->bytes, 1, 0, l, &v, 0);
      if (from && to) { memcpy(to, from, i->bytes); if (u) memcpy(v, u, i->bytes); else memset(v, 0, i->bytes); }
    } else load_lane(w, i, F_BUFFER, address, l, i->d.index, i->bytes);
  }
  track(w, i->counter, 0, i->d.index, i->d.kind == VGPR ? i->d.dwords : 0);
}

/* LDS: bank conflicts are counted as the cycles of 32 banks of 4 bytes. */
static void count_banks(Wave *w, const u32 *address, u64 exec, u32 bytes, u32 offset) {
  Machine *m = w->machine;
  u32 words[32] = {0}, count = 0, most = 0, now = ++m->bank_access;
  for (u32 l = 0; l < w->lanes; l++) {
    if (!(exec >> l & 1)) continue;
    for (u32 b = 0; b < (bytes + 3) / 4; b++) {
      u32 word = (address[l] + offset) / 4 + b;
      if (word >= m->lds_bytes / 4 || m->bank_seen[word] == now) continue; /* lanes that read one word share it */
      m->bank_seen[word] = now;
      count++;
      if (++words[word % 32] > most) most = words[word % 32];
    }
  }
  m->bank_cycles += most;
  m->bank_ideal += (count + 31) / 32;
}

enum { L_PLAIN, L_PAIR, L_PAIR_64, L_ADDTID, L_TR16 };

/* What a transposed load gives: each 16 lanes loaded four rows of 16 halves, four halves a lane; a lane gets a column. */
static void transpose_halves(Wave *w, u32 first, u64 exec) {
  u32 n = w->lanes, value[2][MAX_LANES], u[2][MAX_LANES];
  for (u32 d = 0; d < 2; d++)
    for (u32 l = 0; l < n; l++) {
      value[d][l] = row(w, first + d)[l];
      u[d][l] = !(exec >> l & 1) ? ~0u : w->lanes_v[first + d] >> l & 1 ? unwritten_row(w, first + d)[l] : 0;
    }
  for (u32 d = 0; d < 2; d++) {
    u32 made[MAX_LANES], made_u[MAX_LANES], any = 0;
    for (u32 l = 0; l < n; l++) {
      made[l] = made_u[l] = 0;
      for (u32 h = 0; h < 2; h++) {
        u32 column = l & 15, from = (l & ~15u) + 4 * (2 * d + h) + column / 4, at = column % 4;
        made[l] |= (value[at / 2][from] >> 16 * (at & 1) & 0xffff) << 16 * h;
        made_u[l] |= (u[at / 2][from] >> 16 * (at & 1) & 0xffff) << 16 * h;
      }
      if (exec >> l & 1) any |= made_u[l];
    }
    u32 *out = row(w, first + d);
    for (u32 l = 0; l < n; l++) if (exec >> l & 1) out[l] = made[l];
    mark_row(w, first + d, any ? made_u : 0, exec);
  }
}

static void run_lds(Wave *w, const Inst *i) {
  u64 exec = exec_of(w);
  u32 n = w->lanes, kind = i->dpp;
  const Operand *a = &i->s[0];
  start(w, i);
  check_address(w, a, exec);
  u32 zero[MAX_LANES] = {0};
  const u32 *address = a->kind == VGPR ? row(w, a->index) : zero;
  u32 kept[MAX_LANES];
  memcpy(kept, address, n * 4); /* the result may overlap the address */
  u64 addresses[MAX_LANES];
  for (u32 l = 0; l < n; l++) addresses[l] = kept[l] + (u32)i->immediate;
  for (u32 l = kind == L_PLAIN && bulk_lds(w, i, addresses, exec) ? n : 0; l < n; l++) {
    if (!(exec >> l & 1)) continue;
    u32 at = kept[l] + (u32)i->immediate;
    if (i->flags & ATOMIC) { atomic_lane(w, i, F_LDS, at, l, i->d.index, i->s[1].index); continue; }
    if (kind == L_PAIR || kind == L_PAIR_64) { /* two offsets, in units of the element or of 64 elements */
      u32 unit = i->bytes * (kind == L_PAIR_64 ? 64 : 1), first = (u32)i->immediate & 255, second = (u32)i->immediate >> 8 & 255;
      for (u32 h = 0; h < 2; h++) {
        u32 to = kept[l] + unit * (h ? second : first);
        if (i->flags & STORE) store_lane(w, i, F_LDS, to, l, i->s[1 + h].index, i->bytes);
        else load_lane(w, i, F_LDS, to, l, i->d.index + h * i->bytes / 4, i->bytes);
      }
      continue;
    }
    if (kind == L_ADDTID) at = (w->s[M0] & 0xffff) + (u32)i->immediate + 4 * l;
    if (i->flags & STORE) store_lane(w, i, F_LDS, at, l, i->s[1].index, i->bytes);
    else load_lane(w, i, F_LDS, at, l, i->d.index, i->bytes);
  }
  if (kind == L_TR16) transpose_halves(w, i->d.index, exec);
  if (kind == L_PLAIN && !(i->flags & ATOMIC)) count_banks(w, kept, exec, i->bytes, (u32)i->immediate);
  track(w, i->counter, 0, i->d.index, i->d.kind == VGPR ? i->d.dwords : 0);
  if (kind != L_ADDTID && w->outstanding[C_LDS]) { /* a barrier orders it only if it was waited for */
    u32 at = (w->head[C_LDS] + w->outstanding[C_LDS] - 1) % QUEUE, pair = kind == L_PAIR || kind == L_PAIR_64;
    u32 unit = i->bytes * (kind == L_PAIR_64 ? 64 : 1);
    for (u32 l = 0; l < n; l++) {
      w->lds_access[at].address[0][l] = kept[l] + (pair ? unit * ((u32)i->immediate & 255) : (u32)i->immediate);
      w->lds_access[at].address[1][l] = kept[l] + unit * ((u32)i->immediate >> 8 & 255);
    }
    w->lds_access[at].pair = pair;
    w->lds_access[at].exec = exec;
    w->lds_access[at].bytes = i->bytes;
    w->lds_access[at].store = (i->flags & (STORE | ATOMIC)) != 0;
  }
}
/* At a barrier: what is still under way belongs to the time after it, too. */
static void carry_over(Wave *w) {
  Machine *m = w->machine;
  Group *g = w->group;
  for (u32 q = 0; q < w->outstanding[C_LDS]; q++) {
    u32 at = (w->head[C_LDS] + q) % QUEUE;
    for (u32 l = 0; l < w->lanes; l++) {
      if (!(w->lds_access[at].exec >> l & 1)) continue;
      for (u32 h = 0; h <= w->lds_access[at].pair; h++) {
        u32 first = w->lds_access[at].address[h][l];
        for (u32 k = first; k < first + w->lds_access[at].bytes && k < m->lds_bytes; k++) {
          u64 now = g->barrier_epoch, bit = 1ull << w->number;
          if (w->lds_access[at].store) g->lds_writer[k] = now << 8 | 128 | w->number;
          else g->lds_reader[k] = (g->lds_reader[k] >> 32) == now ? g->lds_reader[k] | bit : now << 32 | bit;
        }
      }
    }
  }
}

static void run_smem(Wave *w, const Inst *i) {
  const Operand *b = &i->s[0];
  if (anything_pending(w)) use_operands(w, i);
  check_address(w, b, 1);
  u64 base = w->s[b->index] | (u64)w->s[b->index + 1] << 32, offset = (u64)(i64)i->immediate;
  if (i->s[1].kind == SGPR) { check_address(w, &i->s[1], 1); offset += w->s[i->s[1].index]; }
  u32 records = ~0u;
  if (b->dwords == 4) { base &= 0xffffffffffffull; records = w->s[b->index + 2]; u32 stride = w->s[b->index + 1] >> 16 & 0x3fff; if (stride) records *= stride; }
  u64 address = (base + offset) & (i->bytes < 4 ? ~0ull : ~3ull);
  u32 words = (i->bytes + 3) / 4;
  for (u32 d = 0; d < words; d++) {
    u32 value = 0, size = i->bytes < 4 ? i->bytes : 4, u = 0;
    if (b->dwords != 4 || offset + 4 * d + size <= records) {
      u8 *unwritten, *from = global_at(w, address + 4 * d, size, 0, 0, 0, &unwritten, 0);
      if (from) { memcpy(&value, from, size); if (unwritten) memcpy(&u, unwritten, size); } else value = 0xdeadbeefu;
    }
    if (i->flags & SIGNED) value = size == 1 ? (u32)(i32)(i8)value : (u32)(i32)(i16)value;
    if (i->d.index != NULL_REGISTER) { w->s[i->d.index + d] = value; w->unwritten_s[i->d.index + d] = u; }
  }
  track(w, i->counter, 1, i->d.index, words);
}
