/* Entry points: what Python calls. */
#include "run.h"

#include "ops.inc"

u32 rocmend_sizes(u32 which) {
  switch (which) {
    case 0: return sizeof(Operand);
    case 1: return sizeof(Inst);
    case 2: return sizeof(Machine);
    case 3: return sizeof(Allocation);
    case 4: return sizeof(Fault);
    default: return 0;
  }
}

/* What the launch gives each workgroup and wave: registers set up as the ABI says. */
typedef struct {
  u32 grid[3], block[3], first_group, group_count;
  u32 entry, mode, user_sgprs, id_sgprs, id_in_ttmp, packed_ids, vgprs_of_ids, resident;
  u32 scratch_offset_sgpr; /* SGPRS: none */
  u32 user[32];
  u64 code_base;
} Launch;

static void free_group(Group *g) {
  for (u32 k = 0; k < g->waves; k++) {
    free(g->wave[k].v); free(g->wave[k].unwritten_v); free(g->wave[k].lanes_v);
    free(g->wave[k].pending_v); free(g->wave[k].scratch); free(g->wave[k].unwritten_scratch);
  }
  free(g->wave); free(g->lds); free(g->unwritten_lds); free(g->lds_writer); free(g->lds_reader); free(g->clock);
  memset(g, 0, sizeof *g);
}

static void make_group(Machine *m, const Launch *l, Group *g, u32 number) {
  u32 items = l->block[0] * l->block[1] * l->block[2];
  memset(g, 0, sizeof *g);
  g->number = number;
  g->id[0] = number % l->grid[0];
  g->id[1] = number / l->grid[0] % l->grid[1];
  g->id[2] = number / l->grid[0] / l->grid[1];
  g->waves = (items + m->lanes - 1) / m->lanes;
  g->live = g->waves;
  g->epoch = g->barrier_epoch = 1;
  u32 bytes = m->lds_bytes + 16;
  g->lds = malloc(bytes);
  memset(g->lds, 0xa5, bytes);
  g->unwritten_lds = malloc(bytes);
  memset(g->unwritten_lds, m->checks & CHECK_UNWRITTEN ? 0xff : 0, bytes);
  if (m->checks & CHECK_RACES) { g->lds_writer = calloc(bytes, 8); g->lds_reader = calloc(bytes, 8); }
  g->wave = calloc(g->waves, sizeof(Wave));
  for (u32 k = 0; k < g->waves; k++) {
    Wave *w = &g->wave[k];
    u32 n = m->lanes;
    w->machine = m; w->group = g; w->lanes = n; w->number = k; w->at = l->entry; w->mode = l->mode;
    w->registers = m->registers;
    w->v = malloc((size_t)m->registers * n * 4);
    memset(w->v, 0xa5, (size_t)m->registers * n * 4);
    w->lanes_v = malloc(m->registers * 8);
    u64 whole = n == 64 ? ~0ull : 0xffffffffull;
    for (u32 r = 0; r < m->registers; r++) w->lanes_v[r] = m->checks & CHECK_UNWRITTEN ? whole : 0;
    w->pending_v = calloc(m->registers + MAX_DWORDS, 1);
    for (u32 r = 0; r < SGPRS; r++) { w->s[r] = 0xa5a5a5a5; w->unwritten_s[r] = m->checks & CHECK_UNWRITTEN ? ~0u : 0; }
    w->s[SCC] = 0;
    w->s[NULL_REGISTER] = w->s[NULL_REGISTER + 1] = 0;
    w->unwritten_s[NULL_REGISTER] = w->unwritten_s[NULL_REGISTER + 1] = 0;
    w->unwritten_s[EXEC] = w->unwritten_s[EXEC + 1] = 0;
    u32 first = k * n, count = items - first < n ? items - first : n;
    u64 exec = count == 64 ? ~0ull : (1ull << count) - 1;
    w->s[EXEC] = (u32)exec;
    w->s[EXEC + 1] = (u32)(exec >> 32);
    u32 at = 0;
#define SET(value) do { w->s[at] = (value); w->unwritten_s[at] = 0; at++; } while (0)
    for (; at < l->user_sgprs;) SET(l->user[at]);
    if (!l->id_in_ttmp) {
      for (u32 d = 0; d < 3; d++) if (l->id_sgprs >> d & 1) SET(g->id[d]);
      if (l->id_sgprs >> 3 & 1) SET((k == 0 ? 1u << 31 : 0) | k << 6 | g->waves);
      if (l->id_sgprs >> 4 & 1) SET(0); /* offset of the wave's scratch: each wave has its own here */
    }
    at = TTMP + 9; SET(g->id[0]);
    at = TTMP + 7; SET(g->id[1] | g->id[2] << 16);
    at = TTMP + 8; SET(k << 25);
    at = TTMP + 6; SET(0);
    w->s[FLAT_SCRATCH] = w->s[FLAT_SCRATCH + 1] = 0;
    w->unwritten_s[FLAT_SCRATCH] = w->unwritten_s[FLAT_SCRATCH + 1] = 0;
    if (m->scratch_bytes) {
      w->scratch = malloc((size_t)n * m->scratch_bytes);
      memset(w->scratch, 0xa5, (size_t)n * m->scratch_bytes);
      w->unwritten_scratch = malloc((size_t)n * m->scratch_bytes);
      memset(w->unwritten_scratch, m->checks & CHECK_UNWRITTEN ? 0xff : 0, (size_t)n * m->scratch_bytes);
    }
    for (u32 lane = 0; lane < count; lane++) {
      u32 item = first + lane, x = item % l->block[0], y = item / l->block[0] % l->block[1], z = item / l->block[0] / l->block[1];
      if (l->packed_ids) row(w, 0)[lane] = x | (l->vgprs_of_ids > 0 ? y << 10 : 0) | (l->vgprs_of_ids > 1 ? z << 20 : 0);
      else { row(w, 0)[lane] = x; if (l->vgprs_of_ids > 0) row(w, 1)[lane] = y; if (l->vgprs_of_ids > 1) row(w, 2)[lane] = z; }
    }
    u64 live = count == 64 ? ~0ull : (1ull << count) - 1;
    w->lanes_v[0] &= ~live;
    if (!l->packed_ids) for (u32 d = 1; d <= l->vgprs_of_ids && d < 3; d++) w->lanes_v[d] &= ~live;
  }
}

/* Run workgroups [first_group, first_group + group_count). Returns 0; 1: the budget of instructions is spent. */
i32 rocmend_run(Machine *m, const Launch *l) {
  u32 resident = l->resident ? l->resident : 1, made = 0, live = 0;
  Group *group = calloc(resident, sizeof(Group));
  u8 *used = calloc(resident, 1);
  i32 result = 0;
  m->code_base = l->code_base;
  m->rooms = malloc(sizeof(Rooms) * 4);
  m->matrix = malloc((3 * 64 * 256 + 2 * 64 * 64) * sizeof(f64));
  m->bank_seen = calloc(m->lds_bytes / 4 + 1, 4);
  u64 slice = 1u << 20; /* then another workgroup gets its turn: it may be waited for */
  while ((made < l->group_count || live) && !result)
    for (u32 k = 0; k < resident && !result; k++)
      for (;;) { /* workgroups that end within a slice all run in the first place */
        if (!used[k]) {
          if (made >= l->group_count) break;
          u32 number = m->order == REVERSE ? l->first_group + l->group_count - 1 - made : l->first_group + made;
          make_group(m, l, &group[k], number);
          used[k] = 1; made++; live++;
        }
        run_group(m, &group[k], slice);
        if (m->total >= m->budget && !group[k].done) result = 1;
        if (!group[k].done) break;
        free_group(&group[k]);
        used[k] = 0; live--;
      }
  if (result && m->budget)
    for (u32 k = 0; k < resident; k++)
      if (used[k]) for (u32 n = 0; n < group[k].waves; n++) if (!group[k].wave[n].done) { report(&group[k].wave[n], BUDGET, 0, 0, 0); break; }
  for (u32 k = 0; k < resident; k++) if (used[k]) free_group(&group[k]);
  free(group); free(used); free(m->rooms); free(m->bank_seen); free(m->matrix);
  m->rooms = m->bank_seen = 0;
  m->matrix = 0;
  for (u32 k = 0; k < m->sync_room; k++) free(m->sync[k].clock);
  free(m->sync); free(m->shared_clock);
  m->shared_clock = 0;
  m->sync = 0; m->syncs = m->sync_room = 0;
  return result;
}
