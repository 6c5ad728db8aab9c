/* What the engine keeps: instructions as decoded, registers, memory, and what is known of each.
 *
 * Structures that Python fills are mirrored in layout.py; their sizes are compared when the library is loaded.
 */
#pragma once
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;
typedef float f32;
typedef double f64;

enum { MAX_LANES = 64, MAX_SOURCES = 5, MAX_DWORDS = 32, SGPRS = 136, MAX_WAVES = 32, QUEUE = 128 };

/* Kinds of operands. */
enum { NONE, VGPR, SGPR, LITERAL };

/* Numbers of scalar registers beyond the general ones. */
enum { VCC = 106, TTMP = 108, M0 = 124, EXEC = 126, NULL_REGISTER = 128, SCC = 130, XNACK_MASK = 132, FLAT_SCRATCH = 134 };

/* Modifiers of an operand. */
enum { NEG = 1, ABS = 2, HIGH = 4, SEXT = 8, NEG_HIGH = 16, SELECT_HIGH = 32 };

/* Selections of SDWA; DWORD is what an operand without one has. */
enum { DWORD = 0, BYTE_0, BYTE_1, BYTE_2, BYTE_3, WORD_0, WORD_1 };

typedef struct {
  u8 kind, modifiers, select, dwords;
  u16 index, type;
  u64 value;
} Operand;

/* Types of operands, as the instruction table names them. */
enum { B32, B16, B64, PK16, PK32, MIX, MASK, B96, B128, F32, F16, F64, B256, B512, B1024, I32, U32, I64, U64, I16, U16, BF16, MASK_OUT };

typedef struct {
  u16 op;         /* index into the table of functions of its form */
  u8 form;        /* which part of the engine executes it */
  u8 sources;
  u32 pc, next;   /* byte offset in the code; index of the instruction after it */
  i32 target;     /* index of the instruction that a branch goes to */
  i32 immediate;  /* offset, or the 16-bit field of a scalar instruction */
  u32 flags;
  u16 dpp;
  u8 row_mask, bank_mask;
  u8 omod, bytes, counter, generation; /* bytes of a lane's access; which counter tracks it */
  Operand d, e;   /* destinations: a value and a mask of carries, or the two of some instructions */
  Operand s[MAX_SOURCES];
} Inst;

enum {
  CLAMP = 1, DPP = 2, BOUND_CTRL = 4, FETCH_INACTIVE = 8, ZERO_HIGH = 16, SDWA = 32, PRESERVE = 64, SDWA_SEXT = 128,
  SIGNED = 256, D16_LOW = 512, D16_HIGH = 1024, RETURNS = 2048, COHERENT = 4096, OFFEN = 8192, IDXEN = 16384,
  TO_LDS = 32768, DUAL = 65536, READS_D = 131072, STORE = 262144, ATOMIC = 524288, FLOATS = 1048576,
  /* Of scalar instructions: */ WRITES_SCC = 4096, READS_SCC = 16777216,
  IMPLICIT_VCC = 2097152, NO_ADDRESS = 4194304, SCALAR_BASE = 8388608, ANY_EXEC = 16777216, DPP8 = 33554432, TWO = 67108864, LOSES_HALF = 268435456, FNUZ = 134217728
};

enum {
  F_VALU, F_SALU, F_SMEM, F_LDS, F_GLOBAL, F_FLAT, F_BUFFER, F_SCRATCH, F_MATRIX, F_BRANCH, F_WAIT, F_BARRIER, F_END,
  F_NOP, F_LANE, F_HWREG, F_SLEEP, F_TRAP, F_BARRIER_SIGNAL
};

/* Counters of what is outstanding. Before gfx12 scalar loads and the LDS share one. */
enum { C_LOAD, C_STORE, C_LDS, C_SCALAR, COUNTERS };

enum { GFX9 = 9, GFX10 = 10, GFX11 = 11, GFX12 = 12 };

/* What may be wrong; report.py has the words. */
enum {
  BAD_ADDRESS = 1, UNWRITTEN_ADDRESS, UNWRITTEN_BRANCH, UNWRITTEN_EXEC, UNWRITTEN_STORE, NOT_WAITED, OVERWRITTEN,
  LDS_BOUNDS, LDS_RACE, GLOBAL_RACE, MISALIGNED, BARRIER_ENDED, BARRIER_DIFFERS, READ_ONLY, SCRATCH_BOUNDS, HAZARD,
  TRAPPED, BAD_PC, STUCK, BUDGET, ASKS_HOST
};

typedef struct {
  u32 kind, instruction, workgroup, wave, lane, other;
  u64 address, count;
} Fault;

typedef struct {
  u64 base, size;
  u8 *host;
  u8 *unwritten;  /* a mask of the bits of each byte that nothing wrote; null: all are written */
  u64 *writer;    /* the last write of each byte, null where races are not looked for */
  u64 *reader;
  u32 read_only, stores;
} Allocation;

typedef struct { u8 counter, scalar, dwords, half; u16 first; } Pending;

struct Machine;
struct Group;

typedef struct Wave {
  struct Machine *machine;
  struct Group *group;
  u32 *v;            /* vector registers, a row of lanes each; 256 and up are accumulation registers */
  u32 *unwritten_v;  /* bits that nothing wrote, made when the first such bit is computed with */
  u64 *lanes_v;      /* lanes of each vector register that hold such bits */
  u8 *pending_v;     /* counters that each register waits for, a bit each */
  u32 s[SGPRS], unwritten_s[SGPRS];
  u8 pending_s[SGPRS];
  u32 mode, lanes, number, at, registers;
  u32 outstanding[COUNTERS];
  Pending queue[COUNTERS][QUEUE];
  u32 head[COUNTERS];
  u32 scalar_in_flight;
  struct { u32 address[2][MAX_LANES]; u64 exec; u32 bytes, store, pair; } lds_access[QUEUE]; /* beside queue[C_LDS] */
  u8 *scratch, *unwritten_scratch;
  u8 done, waiting, signalled, asleep;
  u32 barrier_at;
  u64 executed;
} Wave;

typedef struct Group {
  u32 number, id[3], waves, live, arrived, barrier_at;
  u32 epoch;         /* goes on at each barrier and each release */
  u32 barrier_epoch; /* what it was after the last barrier */
  u8 *lds, *unwritten_lds;
  u64 *lds_writer;   /* of each byte: epoch, wave, atomic */
  u64 *lds_reader;   /* of each byte: epoch and the waves of that epoch, folded to 31 bits */
  u32 *clock;        /* epochs of other workgroups that are known to be over; null: none */
  Wave *wave;
  u8 done;
} Group;

typedef struct { u64 address; u32 *clock; } Sync;

typedef struct Machine {
  const Inst *code;
  u32 instructions, generation, lanes, lds_bytes, scratch_bytes, groups;
  u32 registers;      /* rows of vector registers; accumulation registers begin at 256 */
  u32 checks, order, quantum, max_faults;
  u64 budget;
  Allocation *allocation;
  u32 allocations, last;
  Fault *fault;
  u32 faults;
  u64 *executed;      /* how often each instruction was executed by a wave */
  u64 *active;        /* lanes that were active then, summed */
  u64 bank_cycles, bank_ideal;
  u64 private_base, shared_base;
  Sync *sync;
  u32 syncs, sync_room;
  u32 *shared_clock;
  u64 random;
  u64 total;
  u64 code_base;
  /* Of the engine, made by rocmend_run. */
  u32 *bank_seen, bank_access;
  void *rooms;
  f64 *matrix;
  void (*trace)(u32 group, u32 wave, u32 instruction, u64 exec, const u32 *v, const u32 *s);
} Machine;

enum { CHECK_UNWRITTEN = 1, CHECK_WAITS = 2, CHECK_RACES = 4, CHECK_BARRIERS = 8, CHECK_STORES = 16, CHECK_PLACES = 64 };
enum { FORWARD, REVERSE, SHUFFLED };

static void report(Wave *w, u32 kind, u32 lane, u64 address, u32 other) {
  Machine *m = w->machine;
  for (u32 i = 0; i < m->faults; i++)
    if (m->fault[i].kind == kind && m->fault[i].instruction == w->at) { m->fault[i].count++; return; }
  if (m->faults >= m->max_faults) return;
  m->fault[m->faults++] = (Fault){kind, w->at, w->group->number, w->number, lane, other, address, 1};
}

static inline u64 all_lanes(const Wave *w) { return w->lanes == 64 ? ~0ull : 0xffffffffull; }
static inline u64 exec_of(const Wave *w) {
  return w->lanes == 64 ? w->s[EXEC] | (u64)w->s[EXEC + 1] << 32 : w->s[EXEC];
}
static inline u64 mask_of(const Wave *w, u32 index) {
  return w->lanes == 64 ? w->s[index] | (u64)w->s[index + 1] << 32 : w->s[index];
}

/* Numbers. */
static inline f32 as_f32(u32 x) { f32 r; memcpy(&r, &x, 4); return r; }
static inline u32 of_f32(f32 x) { u32 r; memcpy(&r, &x, 4); return r; }
static inline f64 as_f64(u64 x) { f64 r; memcpy(&r, &x, 8); return r; }
static inline u64 of_f64(f64 x) { u64 r; memcpy(&r, &x, 8); return r; }
