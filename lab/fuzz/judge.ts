import { readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { AdviseError } from '../../src/base/errors.ts';
import { analyse, type EngineOptions } from '../../src/engine/analyse.ts';
import { collectRanks } from '../../src/engine/collect-ranks.ts';
import { factsFromJson, factsToJson } from '../../src/model/facts-json.ts';
import { Report } from '../../src/model/report.ts';
import { renderMarkdown } from '../../src/render/markdown.ts';
import { renderText } from '../../src/render/text.ts';
import { openSource, type ProfileSource } from '../../src/sources/index.ts';

/** What is wrong with how an input was answered; null: a report or a clear refusal. */
export interface Defect {
  readonly kind: 'exception' | 'refusal' | 'schema' | 'number' | 'text' | 'rule' | 'digest' | 'temp' | 'hang' | 'memory' | 'crash';
  readonly message: string;
}

export interface Verdict {
  readonly outcome: 'report' | 'refused';
  readonly defect: Defect | null;
}

const OPTIONS: EngineOptions = { lang: 'en', thresholds: {}, disabledRules: [], gate: null };
const BAD_TEXT = /\b(NaN|undefined|Infinity)\b|\[object /;
/** Keys whose texts are foreign names as they stand, or pictures' labels made of them. */
const FOREIGN = new Set([
  'path',
  'file',
  'source',
  'symbol',
  'versions',
  'device',
  'groups',
  'views',
  'code',
  'edits',
  'kind',
  'rule',
  'id',
]);

function firstBad(value: unknown, where: string, texts: boolean): Defect | null {
  if (typeof value === 'number') return Number.isFinite(value) ? null : { kind: 'number', message: `${where} is ${value}` };
  if (typeof value === 'string') {
    if (!texts) return null;
    const prose = value.replace(/`[^`]*`/g, '');
    const found = BAD_TEXT.exec(prose);
    return found === null ? null : { kind: 'text', message: `${where}: ${prose.slice(Math.max(0, found.index - 60), found.index + 60)}` };
  }
  if (value === null || typeof value !== 'object') return null;
  for (const [key, inner] of Object.entries(value)) {
    const bad = firstBad(inner, `${where}.${/^\d+$/.test(key) ? '#' : key}`, texts && !FOREIGN.has(key));
    if (bad !== null) return bad;
  }
  return null;
}

function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const frames = (error.stack ?? '')
    .split('\n')
    .filter((l) => /\/(src|node_modules)\//.test(l))
    .slice(0, 4);
  const cause = error.cause instanceof Error ? ` (${error.cause.message.slice(0, 300)})` : '';
  return `${error.name}: ${error.message.slice(0, 300)}${cause}\n${frames.map((f) => f.replace(/\(?file:\/\/\/.*\/(src|node_modules)\//, '($1/')).join('\n')}`;
}

function refusal(error: unknown): Verdict {
  if (!(error instanceof AdviseError)) return { outcome: 'refused', defect: { kind: 'exception', message: stackOf(error) } };
  const clear = error.message.trim() !== '' && error.hint.trim() !== '' && !BAD_TEXT.test(error.message.replace(/`[^`]*`/g, ''));
  return { outcome: 'refused', defect: clear ? null : { kind: 'refusal', message: `${error.code}: ${error.message} / ${error.hint}` } };
}

/** Runs the real engine on what lies at `path`. `thorough` also renders the report and compares it with the report of its digest. */
export async function judge(path: string, thorough: boolean): Promise<Verdict> {
  let source: ProfileSource | null = null;
  let verdict: Verdict;
  try {
    source = await openSource(path);
    const report = await analyse({ sources: [source], options: OPTIONS, source: null });
    verdict = { outcome: 'report', defect: checkReport(report, thorough) };
    if (verdict.defect === null && thorough) verdict = { outcome: 'report', defect: await checkDigest(source, report) };
  } catch (error) {
    verdict = refusal(error);
  } finally {
    await source?.close();
  }
  if (verdict.defect === null) {
    const left = readdirSync(tmpdir());
    if (left.length > 0)
      return { outcome: verdict.outcome, defect: { kind: 'temp', message: `left in the temp folder: ${left[0]!.replace(/-\w+$/, '')}` } };
  }
  return verdict;
}

function checkReport(report: Report, render: boolean): Defect | null {
  const parsed = Report.safeParse(report);
  if (!parsed.success) {
    const issue = parsed.error.issues[0]!;
    return { kind: 'schema', message: `${issue.path.map((p) => (typeof p === 'number' ? '#' : String(p))).join('.')}: ${issue.message}` };
  }
  const failed = report.checked.find((c) => c.outcome === 'error');
  if (failed !== undefined) return { kind: 'rule', message: `${failed.rule}: ${failed.reason}` };
  const bad = firstBad(report, 'report', true);
  if (bad !== null) return bad;
  if (render) {
    renderText(report, { color: false, width: 100 });
    renderMarkdown(report);
  }
  return null;
}

/** The report from the digest of a profile must be the report from the profile. */
async function checkDigest(source: ProfileSource, report: Report): Promise<Defect | null> {
  const { ranks } = await collectRanks([source], { onBytes: () => {} });
  const json = Buffer.from(factsToJson(ranks));
  const entry = {
    path: 'facts.json',
    bytes: json.length,
    place: { file: '' },
    open: async function* () {
      yield json;
    },
  };
  try {
    factsFromJson(json.toString());
  } catch (error) {
    const cause = (error as Error).cause;
    return { kind: 'digest', message: `own digest refused: ${cause instanceof Error ? cause.message.slice(0, 400) : String(error)}` };
  }
  const digest: ProfileSource = { label: 'facts.json', kind: 'file', entries: [entry], refused: [], close: async () => {} };
  const again = await analyse({ sources: [digest], options: OPTIONS, source: null });
  for (const part of ['verdict', 'job', 'breakdown', 'findings', 'checked', 'totals', 'views'] as const) {
    if (JSON.stringify(again[part]) !== JSON.stringify(report[part])) {
      return { kind: 'digest', message: `${part} differs when it comes from the digest` };
    }
  }
  return null;
}
