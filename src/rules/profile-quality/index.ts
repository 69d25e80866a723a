import { length, unionSorted } from '../../base/intervals.ts';
import { COMPUTE, type RankFacts } from '../../model/facts.ts';
import type { Message } from '../../model/lang.ts';
import { defineRule, type RawEvidence } from '../../model/rule.ts';

/** Kernels that compute for less than this part of what the step table says are a cut of the table, not a rounding. */
const WHOLE = 0.5;

/** Computing time of the recorded kernels and of the step table, ms, when most of the kernels are missing; null when they are not. */
function cutShort({ tape, steps, files }: RankFacts): { rowsMs: number; tableMs: number } | null {
  if (tape === null || !tape.kind.includes(COMPUTE) || steps.some((s) => s.breakdown.source !== files.steps)) return null;
  const rowsMs = length(unionSorted(tape.start, tape.duration, (i) => tape.kind[i] === COMPUTE)) / 1e6;
  const tableMs = steps.reduce((sum, s) => sum + s.breakdown.computingMs, 0);
  return rowsMs < WHOLE * tableMs ? { rowsMs, tableMs } : null;
}

export default defineRule({
  id: 'profile-quality',
  title: { en: 'What this profile could not tell', zh: '这份 profile 无法回答的问题' },
  category: 'capture',
  maturity: 'stable',
  needs: [],
  options: {
    minSteps: {
      default: 3,
      unit: 'count',
      min: 1,
      max: 100,
      description: { en: 'steps a capture should hold', zh: '采集应包含的迭代数' },
      why: {
        en: 'with three steps noise can be told from a cause, with one it cannot',
        zh: '三个迭代可以区分噪声与原因，一个则不能',
      },
    },
  },
  remedies: ['capture-again'],
  detect(job, options) {
    const evidence: RawEvidence[] = [];
    const lacking: string[] = [];
    const add = (id: string, message: Message, rank: number | null = null, file: string | null = null): void => {
      lacking.push(id);
      evidence.push({ message, rank, file });
    };
    const { world } = job;
    const unnamed = job.ranks.filter((r) => r.rank === null).length;
    if (world.missing.length > unnamed && unnamed > 0) {
      add('ranks', {
        text: {
          en: '{n:int} ranks are missing, and the files that are here do not say their rank',
          zh: '缺少 {n:int} 张卡，已有文件也没有记录卡序号',
        },
        params: { n: world.missing.length - unnamed },
      });
    } else if (world.missing.length > 0) {
      add('ranks', {
        text:
          world.size === null
            ? { en: 'at least {n:int} ranks are missing ({ranks:ranks})', zh: '至少缺少 {n:int} 张卡（{ranks:ranks}）' }
            : { en: '{n:int} of {size:int} ranks are missing ({ranks:ranks})', zh: '缺少 {n:int}/{size:int} 张卡（{ranks:ranks}）' },
        params: { n: world.missing.length, size: world.size, ranks: world.missing.slice(0, 64) },
      });
    } else if (world.complete === null && job.noReplay === 'ranks-missing') {
      const first = [...job.arrivals].sort((a, b) => b.body - a.body)[0];
      add(
        'ranks',
        first === undefined
          ? {
              text:
                job.ranks.length === 1
                  ? {
                      en: 'the number of ranks is not recorded, and this one communicates with others: ranks are missing',
                      zh: '没有记录总卡数，而这张卡与其他卡通信：缺少部分卡',
                    }
                  : {
                      en: 'no two ranks here take part in the same collective: those they communicate with are missing',
                      zh: '这里没有两张卡参与同一次集合通信：缺少与它们通信的卡',
                    },
            }
          : {
              text: {
                en: 'the number of ranks is not recorded, and {name:code} lasts on for {body:ms} after the last uploaded rank arrived: ranks may be missing',
                zh: '没有记录总卡数，且 {name:code} 在最后一张已上传的卡到达后仍持续 {body:ms}：可能缺少部分卡',
              },
              params: {
                name: job.ranks[first.ranks[0]!]!.collectives[job.matches[first.match]!.calls[0]!]!.name,
                body: first.body / 1e6,
              },
            },
      );
    }
    if (job.steps.usedIndex.length < options.minSteps) {
      add('steps', {
        text:
          job.steps.basis === 'device-span'
            ? { en: 'no step marks: noise cannot be told from a cause', zh: '没有迭代标记：无法区分噪声与原因' }
            : { en: '{n:int} step captured: noise cannot be told from a cause', zh: '只采集了 {n:int} 个迭代：无法区分噪声与原因' },
        params: { n: job.steps.usedIndex.length },
      });
    }
    const first = job.ranks[0];
    if (first !== undefined) {
      if (first.settings.level === 'Level0') {
        add(
          'level',
          { text: { en: 'Level0 has no operator types and no communication details', zh: 'Level0 没有算子类型与通信明细' } },
          0,
          'profiler_info.json',
        );
      }
      const blind = job.ranks.filter((r) => !r.capabilities.has('launches'));
      const hasTimeline = (r: (typeof blind)[number]): boolean => r.inputs.some((i) => i.kind === 'trace' && i.status !== 'refused');
      const noTrace = blind.filter((r) => !hasTimeline(r));
      const noLaunches = blind.filter(hasTimeline);
      if (noTrace.length > 0) {
        add('trace', {
          text: {
            en: 'no trace_view.json for rank {ranks:ranks}: host, loader and launch checks are not possible there',
            zh: '卡 {ranks:ranks} 没有 trace_view.json：无法检查 Host、数据加载与下发',
          },
          params: { ranks: noTrace.map((r) => r.rank ?? -1) },
        });
      }
      if (noLaunches.length > 0) {
        add('cpu', {
          text: {
            en: 'the trace_view.json of rank {ranks:ranks} links no kernel to its launch: host, loader and launch checks are not possible there',
            zh: '卡 {ranks:ranks} 的 trace_view.json 没有 kernel 与下发的关联：无法检查 Host、数据加载与下发',
          },
          params: { ranks: noLaunches.map((r) => r.rank ?? -1) },
        });
      }
      if (blind.length > 0) {
        // Without launches nothing could be placed on a line of code anyway.
      } else if (!job.ranks.some((r) => r.capabilities.has('stacks'))) {
        add('stacks', { text: { en: 'no call stacks: causes cannot be placed on a line of code', zh: '没有调用栈：无法定位到代码行' } });
      }
      for (const [i, rank] of job.ranks.entries()) {
        const row = rank.steps.find((s) => {
          const b = s.breakdown;
          const parts = b.computingMs + b.exposedMs + b.freeMs;
          return b.source === rank.files.steps && Math.abs(parts - b.stageMs - b.bubbleMs) > 0.01 * b.stageMs;
        });
        if (row !== undefined) {
          add(
            'inconsistent',
            {
              text: {
                en: 'rank {rank:text}: the parts of its step table do not add up to the stage',
                zh: '卡 {rank:text}：迭代表各部分之和与 Stage 不符',
              },
              params: { rank: rank.rank ?? '?' },
            },
            i,
            'step_trace_time.csv',
          );
          break;
        }
      }
      const cut = job.ranks.map((rank) => cutShort(rank)).findIndex((c) => c !== null);
      if (cut >= 0) {
        const { rowsMs, tableMs } = cutShort(job.ranks[cut]!)!;
        add(
          'inconsistent',
          {
            text: {
              en: 'rank {rank:text}: the kernels recorded compute for {rows:ms}, its step table says {table:ms}: kernels are missing, so a check of kernels that found nothing proves nothing there',
              zh: '卡 {rank:text}：记录到的 kernel 共计算 {rows:ms}，迭代表为 {table:ms}：缺少 kernel，因此 kernel 检查未发现问题不能说明没有问题',
            },
            params: { rank: job.ranks[cut]!.rank ?? '?', rows: rowsMs, table: tableMs },
          },
          cut,
          'kernel_details.csv',
        );
      }
    }
    if (lacking.length === 0) {
      return {
        outcome: 'pass',
        reason: { text: { en: 'all ranks, several steps, traces and stacks are here', zh: '卡、迭代、trace 与调用栈齐全' } },
      };
    }
    return {
      outcome: 'findings',
      findings: [
        {
          title: {
            text:
              lacking.length === 1
                ? { en: 'The capture leaves one question open', zh: '本次采集有 1 个问题无法回答' }
                : { en: 'The capture leaves {n:int} questions open', zh: '本次采集有 {n:int} 个问题无法回答' },
            params: { n: lacking.length },
          },
          ranks: [],
          steps: job.steps.used,
          groups: [],
          confidence: 'high',
          evidence,
          caveats: [],
          removal: null,
          boundMs: null,
          boundMethod: { text: { en: '', zh: '' } },
          information: true,
          symptomOf: null,
          frames: [],
          remedies: [
            {
              id: 'capture-again',
              params: {
                missing: lacking.join(','),
                level: first?.settings.level ?? null,
                steps: job.steps.usedIndex.length,
                ranks: job.ranks.length,
              },
            },
          ],
          hotspot: 'capture',
        },
      ],
    };
  },
});
