/*
 * What every rule of the registry keeps.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { LANGS } from '../../src/model/lang.ts';
import { REMEDIES } from '../../src/remedies/index.ts';
import { RULES } from '../../src/rules/index.ts';

const FOLDER = fileURLToPath(new URL('../../src/rules/', import.meta.url));

/** Ids that other tools may rely on. */
const CONTRACT =
  `dataloader-stall batch-preparation h2d-copy step-start-gap small-op-fragmentation host-bound-launch stream-sync op-recompile
gc-pause memory-alloc-stall aicpu-op transpose-hotspot cast-churn unfused-optimizer fusible-sequence affinity-api cube-utilisation vector-bound
block-dim frequency-drop l2-miss pipe-utilisation hccl-sync-wait slow-rank slow-link hccl-small-packet no-overlap ddp-buffer-broadcast
gradient-sync-per-microstep byte-alignment bandwidth-contention retransmission pipeline-bubble stage-imbalance expert-imbalance group-placement
memory-fragmentation memory-peak memory-growth environment profiler-config version-mismatch profile-quality step-jitter migration-review regression`.split(
    /\s+/,
  );

const KINDS = ['ms', 'pct', 'bytes', 'int', 'num', 'ranks', 'code', 'text'];

/** Text literals of both languages in a rule's source, in pairs as they stand there. */
function messages(source: string): { en: string; zh: string }[] {
  const quoted = String.raw`'((?:[^'\\]|\\.)*)'`;
  return [...source.matchAll(new RegExp(`en: ${quoted},\\s*zh: ${quoted}`, 'g'))].map((m) => ({ en: m[1]!, zh: m[2]! }));
}

const placeholders = (text: string): string[] => [...text.matchAll(/\{(\w+):(\w+)\}/g)].map((m) => `${m[1]}:${m[2]}`).sort();

test('every folder is a rule of its name and every rule has a folder', () => {
  const folders = readdirSync(FOLDER, { withFileTypes: true })
    .filter((d) => d.isDirectory() && existsSync(`${FOLDER}${d.name}/index.ts`))
    .map((d) => d.name)
    .sort();
  expect(RULES.map((r) => r.id).sort()).toEqual(folders);
  expect(new Set(RULES.map((r) => r.id)).size).toBe(RULES.length);
});

describe.each(RULES.map((rule) => [rule.id, rule] as const))('%s', (id, rule) => {
  const source = readFileSync(`${FOLDER}${id}/index.ts`, 'utf8');

  test('has an id of the contract and a title in both languages', () => {
    expect(CONTRACT).toContain(id);
    for (const lang of LANGS) expect(rule.title[lang]).toMatch(/\S/);
    expect(rule.title.zh).toMatch(/[\u4e00-\u9fff]/);
  });

  test('gives every option a description in both languages, a reason and a default within its bounds', () => {
    for (const [name, option] of Object.entries(rule.options)) {
      expect(option.description.en, name).toMatch(/\S/);
      expect(option.description.zh, name).toMatch(/[\u4e00-\u9fff]/);
      expect(option.why.en.length, name).toBeGreaterThan(20);
      expect(option.why.zh, name).toMatch(/[\u4e00-\u9fff]/);
      expect(option.default, name).toBeGreaterThanOrEqual(option.min);
      expect(option.default, name).toBeLessThanOrEqual(option.max);
      expect(option.min, name).toBeLessThan(option.max);
    }
  });

  test('offers remedies that exist', () => {
    for (const remedy of rule.remedies) expect([...REMEDIES.keys()]).toContain(remedy);
    for (const [, used] of source.matchAll(/\{ ?id: '([a-z-]+)', params/g)) expect(rule.remedies).toContain(used);
  });

  test('uses the same typed placeholders in both languages', () => {
    const list = messages(source);
    expect(list.length).toBeGreaterThan(1);
    for (const { en, zh } of list) {
      expect(placeholders(zh), en).toEqual(placeholders(en));
      for (const p of placeholders(en)) expect(KINDS, en).toContain(p.split(':')[1]);
      expect(/\{(?!\w+:\w+\})/.test(en), en).toBe(false);
    }
  });

  test('is described on a page of its own once pages exist', () => {
    const pages = fileURLToPath(new URL('../../docs/rules/', import.meta.url));
    if (existsSync(pages)) expect(existsSync(`${pages}${id}.md`), `docs/rules/${id}.md`).toBe(true);
    expect(rule.maturity).toMatch(/^(stable|preview)$/);
  });
});
