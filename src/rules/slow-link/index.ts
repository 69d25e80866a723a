import type { JobFacts } from '../../facts/job/index.ts';
import { judgeLinks, type LinkFacts, type LinkJudgement, linksOf, typeGap } from '../../facts/job/links.ts';
import { missingRanksCaveat } from '../../facts/job/missing-ranks.ts';
import { dataConfidence } from '../../facts/job/per-step.ts';
import { stepCount, transfers } from '../../facts/job/transfers.ts';
import type { Confidence } from '../../model/report.ts';
import { type Detection, defineRule, type RawEvidence, type RawFinding } from '../../model/rule.ts';
import type { Removals } from '../../replay/replay.ts';

/** Nearly all calls must show it, not only the middle one. */
const EVERY_CALL = 1.2;
/** And all bytes together: single calls may be disturbed. */
const OVERALL = 1.3;
/** A card of which so many links are slow is slow itself: its port, not the pairs. */
const MOST_LINKS = 2 / 3;

/** A slow link with the time it costs in each of its parts, whole capture. */
interface Slow {
  readonly link: LinkFacts;
  readonly lostMs: readonly number[];
}

/** Both ends as text: plain ranks, or numbers of a group that nothing translates. */
function pairOf({ ends, global }: LinkFacts): string {
  return global ? `${ends[0]}–${ends[1]}` : `#${ends[0]}–#${ends[1]}`;
}

/** Indices of the ranks at the ends that are here. */
function endsHere(job: JobFacts, link: LinkFacts): number[] {
  if (!link.global) return [];
  return job.ranks.flatMap((r, i) => (r.rank !== null && link.ends.includes(r.rank) ? [i] : []));
}

function matrixOf(job: JobFacts, rank: number): string {
  const has = job.ranks[rank]!.inputs.some((i) => i.path.endsWith('communication_matrix.json'));
  return has ? 'communication_matrix.json' : 'communication.json';
}

/** ms that each collective would take less: links of one call work side by side, so the one that loses most counts. */
function lostByCall(job: JobFacts, slow: readonly Slow[]): Map<number, number> {
  const lost = new Map<number, number>();
  const moved = new Map<string, number>();
  const weight = (bytes: number, payload: number): number => (bytes > 0 ? bytes : payload > 0 ? payload : 1);
  const keyOf = (rank: number, group: string, op: string): string => `${rank}/${group}/${op}`;
  job.ranks.forEach((rank, r) => {
    for (const call of rank.collectives) {
      const key = keyOf(r, call.group, call.op);
      moved.set(key, (moved.get(key) ?? 0) + weight(call.bytes, call.payload));
    }
  });
  for (const { link, lostMs } of slow) {
    const byCalls = new Map(link.parts.map((part, i) => [keyOf(part.reporter, part.group, part.op), lostMs[i]!] as const));
    job.matches.forEach((match, m) => {
      match.ranks.forEach((r, k) => {
        const key = keyOf(r, match.group, match.op);
        const ms = byCalls.get(key);
        if (ms === undefined) return;
        const call = job.ranks[r]!.collectives[match.calls[k]!]!;
        const own = (ms * weight(call.bytes, call.payload)) / moved.get(key)!;
        lost.set(m, Math.max(lost.get(m) ?? 0, own));
      });
    });
  }
  return lost;
}

function removalOf(job: JobFacts, lost: ReadonlyMap<number, number>): Removals | null {
  if (job.replay === null) return null;
  const bodies = new Map<number, Map<number, number>>();
  for (const arrival of job.arrivals) {
    const ms = lost.get(arrival.match);
    if (ms === undefined) continue;
    const match = job.matches[arrival.match]!;
    match.ranks.forEach((r, k) => {
      const { node } = job.ranks[r]!.collectives[match.calls[k]!]!;
      if (node === -1) return;
      const own = bodies.get(r) ?? new Map<number, number>();
      own.set(node, Math.max(0.05 * arrival.body, arrival.body - ms * 1e6));
      bodies.set(r, own);
    });
  }
  return new Map([...bodies].map(([r, own]) => [r, { bodies: own }] as const));
}

/** ms per step: what computing waited for at these calls, no more than what they lose. Without the calls only the links tell. */
function boundOf(job: JobFacts, lost: ReadonlyMap<number, number>, slow: readonly Slow[]): number {
  let total = 0;
  let known = false;
  for (const t of transfers(job)) {
    const ms = lost.get(t.match);
    if (ms === undefined) continue;
    known = true;
    total += Number.isNaN(t.blockedMs) ? ms : Math.min(ms, t.blockedMs);
  }
  if (known) return total / stepCount(job);
  const steps = Math.max(1, ...job.ranks.map((r) => r.steps.length));
  return Math.max(0, ...slow.flatMap(({ lostMs }) => lostMs)) / steps;
}

/** The card at which most slow links meet, when most of its links are slow; null when they have no such card. */
function commonCard(all: readonly LinkJudgement[], slow: readonly LinkJudgement[]): number | null {
  const count = (list: readonly LinkJudgement[]): Map<number, number> => {
    const counts = new Map<number, number>();
    for (const { link } of list) if (link.global) for (const end of link.ends) counts.set(end, (counts.get(end) ?? 0) + 1);
    return counts;
  };
  const of = count(all);
  for (const [rank, n] of count(slow)) if (n >= 2 && n === slow.length && n >= MOST_LINKS * of.get(rank)!) return rank;
  return null;
}

export default defineRule({
  id: 'slow-link',
  title: { en: 'A link between two cards is slower than the others', zh: '某条卡间链路比其他链路慢' },
  category: 'communication',
  maturity: 'preview',
  needs: [],
  options: {
    minSlowdown: {
      default: 1.5,
      unit: 'count',
      min: 1,
      max: 1_000,
      description: { en: 'times as long as the other links need for the same bytes', zh: '传输相同数据的耗时是其他链路的多少倍' },
      why: {
        en: 'links of one kind differ by less than 10 % in real captures, single disturbed calls by up to 50 %',
        zh: '实际采集中，同类链路相差不到 10%，个别受干扰的通信相差可达 50%',
      },
    },
    minCalls: {
      default: 2,
      unit: 'count',
      min: 1,
      max: 1_000,
      description: { en: 'calls that must show it', zh: '至少多少次通信能看到' },
      why: {
        en: 'one call may meet other traffic; a link that is slow is slow in each of them',
        zh: '单次通信可能遇到其他流量；真正慢的链路每次都慢',
      },
    },
    minShare: {
      default: 0.02,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'smallest loss reported, as a share of the step', zh: '可报告的最小损失，占迭代耗时的比例' },
      why: {
        en: 'below 2 % of a step a change cannot be told from noise',
        zh: '低于迭代的 2% 时，变化与噪声无法区分',
      },
    },
  },
  remedies: ['check-link'],
  detect(job, options): Detection {
    const links = linksOf(job);
    if (links.length === 0) {
      return {
        outcome: 'notApplicable',
        reason: {
          text: {
            en: 'no figures of single links: `communication_matrix.json` is written from Level1 on',
            zh: '没有单条链路的数据：`communication_matrix.json` 从 Level1 起才有',
          },
        },
      };
    }
    const judged = judgeLinks(job);
    const slow = judged.filter(
      (j) =>
        j.calls >= options.minCalls &&
        j.slowdown >= options.minSlowdown &&
        j.least >= Math.min(EVERY_CALL, options.minSlowdown) &&
        j.overall >= Math.min(OVERALL, options.minSlowdown),
    );
    const floor = options.minShare * (job.steps.stepTimeMs ?? 0);
    const findings: RawFinding[] = [];
    const lost = lostByCall(job, slow);
    if (slow.length > 0 && boundOf(job, lost, slow) >= floor) findings.push(slowLinks(slow, lost));
    const gap = typeGap(job);
    if (gap !== null && gap.slowdown >= options.minSlowdown) {
      const list = gap.slow.map((link, i) => ({ link, lostMs: gap.lostMs[i]! }));
      const byType = lostByCall(job, list);
      const bound = boundOf(job, byType, list);
      if (bound >= floor) findings.push(slowType(byType, bound));
    }
    if (findings.length > 0) return { outcome: 'findings', findings };
    const worst = judged[0];
    if (worst === undefined) {
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: '{n:int} links, none of them with two others of its kind that moved as much at once',
            zh: '{n:int} 条链路，都没有至少两条同类且传输量相当的链路可比',
          },
          params: { n: links.length },
        },
      };
    }
    return {
      outcome: 'pass',
      reason: {
        text: {
          en: 'of {n:int} links the slowest takes {ratio:num} × as long as the others for the same bytes',
          zh: '{n:int} 条链路中最慢的一条，传输相同数据的耗时是其他链路的 {ratio:num} 倍',
        },
        params: { n: links.length, ratio: worst.slowdown },
      },
    };

    function slowLinks(list: readonly LinkJudgement[], byCall: ReadonlyMap<number, number>): RawFinding {
      const worst = list[0]!;
      const card = commonCard(judged, list);
      const here = [
        ...new Set(card === null ? list.flatMap((j) => endsHere(job, j.link)) : job.ranks.flatMap((r, i) => (r.rank === card ? [i] : []))),
      ];
      const missing = missingRanksCaveat(job);
      const bothWays = list.every((j) => new Set(j.link.parts.map((p) => p.source)).size > 1);
      const data = dataConfidence(job, false);
      const confidence: Confidence = data === 'high' && bothWays && worst.calls >= 4 ? 'high' : data === 'low' ? 'low' : 'medium';
      return {
        ...common(list.map((j) => j.link)),
        title:
          card !== null
            ? {
                text: {
                  en: 'Every link of rank {rank:text} is slower than the others: {ratio:num} × as long for the same bytes',
                  zh: '卡 {rank:text} 的所有链路都比其他链路慢：相同数据耗时为 {ratio:num} 倍',
                },
                params: { rank: card, ratio: worst.slowdown },
              }
            : {
                text:
                  list.length === 1
                    ? {
                        en: 'The {type:text} link {pair:text} takes {ratio:num} × as long as the others for the same bytes',
                        zh: '{type:text} 链路 {pair:text} 传输相同数据的耗时是其他链路的 {ratio:num} 倍',
                      }
                    : {
                        en: '{n:int} links are slower than the others, the {type:text} link {pair:text} most: {ratio:num} × as long',
                        zh: '{n:int} 条链路比其他链路慢，{type:text} 链路 {pair:text} 最慢：耗时为 {ratio:num} 倍',
                      },
                params: { n: list.length, type: worst.link.transport, pair: pairOf(worst.link), ratio: worst.slowdown },
              },
        ranks: here,
        confidence,
        evidence: list.slice(0, 4).map(
          (j): RawEvidence => ({
            message: {
              text: {
                en: '{type:text} link {pair:text}: {rate:num} GB/s in {calls:int} calls, {peers:int} other {type:text} links of the same calls {peerRate:num} GB/s',
                zh: '{type:text} 链路 {pair:text}：{calls:int} 次通信中为 {rate:num} GB/s，同样通信中另外 {peers:int} 条 {type:text} 链路为 {peerRate:num} GB/s',
              },
              params: {
                type: j.link.transport,
                pair: pairOf(j.link),
                rate: j.rate / 1e6,
                peerRate: j.peerRate / 1e6,
                calls: j.calls,
                peers: j.peers,
              },
            },
            file: matrixOf(job, j.link.reporter),
            rank: j.link.reporter,
          }),
        ),
        caveats: [
          ...(missing === null ? [] : [missing]),
          ...(bothWays
            ? []
            : [
                {
                  text: {
                    en: 'only one end of a link reports it, so the other direction is not known',
                    zh: '链路只有一端的数据，反方向的情况未知',
                  },
                },
              ]),
          ...localCaveat(list.map((j) => j.link)),
        ],
        removal: likelyOf(removalOf(job, byCall)),
        boundMs: boundOf(job, byCall, list),
        boundMethod: {
          text: {
            en: 'time on the slow links beyond what the others need for the same bytes, where computing waited for it',
            zh: '慢链路比其他链路传输相同数据多用的时间，只计计算等待的部分',
          },
        },
        remedies: [
          {
            id: 'check-link',
            params: { kind: card === null ? 'pair' : 'card', transport: worst.link.transport, pair: pairOf(worst.link), rank: card },
          },
        ],
        hotspot:
          card === null
            ? list
                .map((j) => j.link.key)
                .sort()
                .join(',')
                .slice(0, 200)
            : `card${card}`,
      };
    }

    function slowType(byCall: ReadonlyMap<number, number>, bound: number): RawFinding {
      const { slow: list, fast, rate, fastRate, slowdown, calls } = gap!;
      const pairs = list.map(pairOf).slice(0, 8).join(', ');
      return {
        ...common(list),
        title: {
          text: {
            en: 'Cards joined by PCIe ({pairs:text}) take {ratio:num} × as long as those joined by {fast:text}',
            zh: '经 PCIe 互联的卡（{pairs:text}）耗时是 {fast:text} 互联的 {ratio:num} 倍',
          },
          params: { pairs, fast, ratio: slowdown },
        },
        ranks: [...new Set(list.flatMap((link) => endsHere(job, link)))],
        confidence: calls >= options.minCalls && dataConfidence(job, false) !== 'low' ? 'medium' : 'low',
        evidence: [
          {
            message: {
              text: {
                en: 'PCIe links {pairs:text}: {rate:num} GB/s; {fast:text} links of the same calls: {fastRate:num} GB/s ({calls:int} calls compared)',
                zh: 'PCIe 链路 {pairs:text}：{rate:num} GB/s；同样通信中的 {fast:text} 链路：{fastRate:num} GB/s（比较了 {calls:int} 次通信）',
              },
              params: { pairs, rate: rate / 1e6, fast, fastRate: fastRate / 1e6, calls },
            },
            file: matrixOf(job, list[0]!.reporter),
            rank: list[0]!.reporter,
          },
        ],
        caveats: [
          {
            text: {
              en: 'which cards share {fast:text} is fixed by the server: it is not a fault, but the choice of cards can avoid it',
              zh: '哪些卡经 {fast:text} 互联由服务器决定：不是故障，但可通过选卡避开',
            },
            params: { fast },
          },
          ...localCaveat(list),
        ],
        removal: likelyOf(removalOf(job, byCall)),
        ceilingOnly: true,
        boundMs: bound,
        boundMethod: {
          text: {
            en: 'time on the PCIe links beyond what the faster links need for the same bytes',
            zh: 'PCIe 链路比更快的链路传输相同数据多用的时间',
          },
        },
        remedies: [{ id: 'check-link', params: { kind: 'type', transport: 'PCIE', pair: pairs, rank: null } }],
        hotspot: 'link-type',
      };
    }

    function common(list: readonly LinkFacts[]): Pick<RawFinding, 'steps' | 'groups' | 'information' | 'symptomOf' | 'frames'> {
      const groups = [...new Set(list.flatMap((link) => link.parts.map((p) => p.group)))].filter((g) => g !== '').slice(0, 8);
      return { steps: job.steps.used, groups, information: false, symptomOf: null, frames: [] };
    }
  },
});

function likelyOf(removals: Removals | null): RawFinding['removal'] {
  return removals === null ? null : { likely: removals };
}

function localCaveat(list: readonly LinkFacts[]): RawFinding['caveats'] {
  if (list.every((link) => link.global)) return [];
  return [
    {
      text: {
        en: 'numbers with # count inside the communication group: the profile does not say which ranks they are',
        zh: '带 # 的编号是通信域内编号：profile 没有说明对应哪些卡',
      },
    },
  ];
}
