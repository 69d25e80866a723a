import type { JobFacts } from '../facts/job/index.ts';
import { type LinkFacts, linksOf } from '../facts/job/links.ts';
import { serversOf } from '../facts/job/servers.ts';
import type { Transport } from '../model/capture.ts';

/** Rows and columns of one picture; more ranks are folded. */
const SIDE = 64;
const MATRICES = 4;

export interface LinksView {
  /** null: rows are global ranks; else numbers inside this group, which nothing translates. */
  readonly group: string | null;
  /** What a row and a column hold: one rank each, or the ranks of one server or of one block. */
  readonly rows: readonly (readonly number[])[];
  readonly foldedBy: 'server' | 'block' | null;
  /** One for each pair that moved something, both directions apart; of a folded pair the slowest link, by name. */
  readonly cells: readonly {
    readonly from: number;
    readonly to: number;
    readonly transport: Transport;
    readonly bytes: number;
    readonly ms: number;
    readonly links: number;
    readonly worst: readonly [number, number];
  }[];
}

interface Cell {
  from: number;
  to: number;
  transport: Transport;
  bytes: number;
  ms: number;
  links: number;
  worst: readonly [number, number];
}

/** Links between the cards and what each carried per time, the groups with most transfer first. */
export function linksView(job: JobFacts): LinksView[] {
  const groups = Map.groupBy(linksOf(job), (link) =>
    link.global ? null : link.key.slice(0, link.key.lastIndexOf('/', link.key.lastIndexOf('/') - 1)),
  );
  return [...groups]
    .sort(([, a], [, b]) => sumMs(b) - sumMs(a))
    .slice(0, MATRICES)
    .map(([group, links]) => matrixOf(job, group, links));
}

const sumMs = (links: readonly LinkFacts[]): number => links.reduce((sum, link) => sum + link.ms, 0);

function matrixOf(job: JobFacts, group: string | null, links: readonly LinkFacts[]): LinksView {
  const ends = [...new Set(links.flatMap((link) => link.ends))].sort((a, b) => a - b);
  const { rows, foldedBy } = rowsOf(job, group, ends);
  const rowOf = new Map(rows.flatMap((ranks, row) => ranks.map((rank) => [rank, row] as const)));
  const cells = new Map<number, Cell>();
  for (const link of links) {
    const [a, b] = link.ends;
    for (const source of new Set(link.parts.map((part) => part.source))) {
      const own = link.parts.filter((part) => part.source === source);
      const bytes = own.reduce((sum, part) => sum + part.bytes, 0);
      const ms = own.reduce((sum, part) => sum + part.ms, 0);
      const target = source === a ? b : a;
      const [from, to] = [rowOf.get(source), rowOf.get(target)];
      if (from === undefined || to === undefined || !(ms > 0)) continue;
      const at = from * rows.length + to;
      const before = cells.get(at);
      const kept = { from, to, transport: link.transport, bytes, ms, worst: [source, target] as const };
      if (before === undefined) cells.set(at, { ...kept, links: 1 });
      else cells.set(at, { ...(bytes / ms < before.bytes / before.ms ? kept : before), links: before.links + 1 });
    }
  }
  const round = (value: number): number => Math.round(value * 1000) / 1000;
  return { group, rows, foldedBy, cells: [...cells.values()].map((c) => ({ ...c, bytes: Math.round(c.bytes), ms: round(c.ms) })) };
}

function rowsOf(job: JobFacts, group: string | null, ends: readonly number[]): Pick<LinksView, 'rows' | 'foldedBy'> {
  if (ends.length <= SIDE) return { rows: ends.map((rank) => [rank]), foldedBy: null };
  const present = new Set(ends);
  const servers = group === null ? serversOf(job).map((ranks) => ranks.filter((rank) => present.has(rank))) : [];
  const inServers = new Set(servers.flat());
  if (servers.length > 1 && servers.length <= SIDE && ends.every((rank) => inServers.has(rank)))
    return { rows: [...servers].sort((a, b) => a[0]! - b[0]!), foldedBy: 'server' };
  const per = Math.ceil(ends.length / SIDE);
  return { rows: Array.from({ length: Math.ceil(ends.length / per) }, (_, i) => ends.slice(i * per, (i + 1) * per)), foldedBy: 'block' };
}
