import type { Database } from '../database.ts';
import { type ProfilerMetadata, readProfilerMetadata } from '../side-files.ts';

export interface DatabaseMetadata extends ProfilerMetadata {
  readonly rank: number | null;
  readonly device: number | null;
}

/** META_DATA holds profiler_metadata.json, one row per key; the profiler's own tables name rank, device and chip. */
export function readMetadata(db: Database, wanted: number | null = null): DatabaseMetadata {
  const root: Record<string, unknown> = {};
  const meta = db.table('META_DATA');
  if (meta?.has('name') === true && meta.has('value')) {
    const value = 'CASE WHEN octet_length("value") <= 16777216 THEN "value" END';
    for (const [name, text] of db.rows(`SELECT substr("name", 1, 200), ${value} FROM "META_DATA" LIMIT 1000`)) {
      if (typeof name === 'string' && typeof text === 'string') root[name] = parsed(text);
    }
  }
  const metadata = readProfilerMetadata(root);
  const map = db.table('RANK_DEVICE_MAP');
  let rank: number | null = null;
  let device: number | null = null;
  if (map !== null) {
    const own = wanted === null ? '' : ` WHERE ${map.sql('deviceId')} = ${wanted}`;
    for (const [r, d] of db.rows(`SELECT ${map.sql('rankId')}, ${map.sql('deviceId')} FROM "RANK_DEVICE_MAP"${own} LIMIT 1`)) {
      rank = known(r);
      device = known(d);
    }
  }
  return { ...metadata, soc: metadata.soc ?? chip(db), rank, device };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function known(value: unknown): number | null {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < 1e7 ? value : null;
}

/**
 * NPU_INFO names the chip's family: `Ascend910B` stands for all of 910B1 to 910B4 and 910_93 there, while the same word
 * as a product name is the first generation. The word "family" keeps the two apart.
 */
function chip(db: Database): string | null {
  const table = db.table('NPU_INFO');
  if (table === null || !table.has('name')) return null;
  for (const [name] of db.rows('SELECT substr("name", 1, 100) FROM "NPU_INFO" LIMIT 1')) {
    if (typeof name !== 'string' || name === '' || name === 'UNKNOWN') return null;
    return name === 'Ascend910B' ? 'Ascend910B family' : name;
  }
  return null;
}
