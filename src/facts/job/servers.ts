import type { JobFacts } from './index.ts';
import { linksOf } from './links.ts';

/** Ranks that are linked inside a server, as far as the links tell: global ranks by server, largest first. */
export function serversOf(job: JobFacts): number[][] {
  const parent = new Map<number, number>();
  const find = (rank: number): number => {
    let at = rank;
    for (let up = parent.get(at) ?? at; up !== at; up = parent.get(at) ?? at) at = up;
    parent.set(rank, at);
    return at;
  };
  for (const { ends, global, transport } of linksOf(job)) {
    if (!global || transport === 'RDMA' || transport === 'OTHER') continue;
    const [a, b] = [find(ends[0]), find(ends[1])];
    if (!parent.has(b)) parent.set(b, b);
    parent.set(a, b);
  }
  const servers = new Map<number, number[]>();
  for (const rank of parent.keys()) {
    const root = find(rank);
    const own = servers.get(root) ?? [];
    own.push(rank);
    servers.set(root, own);
  }
  return [...servers.values()].map((ranks) => ranks.sort((a, b) => a - b)).sort((a, b) => b.length - a.length || a[0]! - b[0]!);
}
