import type { Message } from '../../model/lang.ts';
import { defineRule, type RawEvidence } from '../../model/rule.ts';

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
    if (world.missing.length > 0) {
      add('ranks', {
        text:
          world.size === null
            ? { en: 'at least {n:int} ranks are missing ({ranks:ranks})', zh: '至少缺少 {n:int} 张卡（{ranks:ranks}）' }
            : { en: '{n:int} of {size:int} ranks are missing ({ranks:ranks})', zh: '缺少 {n:int}/{size:int} 张卡（{ranks:ranks}）' },
        params: { n: world.missing.length, size: world.size, ranks: world.missing.slice(0, 64) },
      });
    } else if (world.complete === null && job.noReplay === 'ranks-missing') {
      const first = [...job.arrivals].sort((a, b) => b.body - a.body)[0];
      add('ranks', {
        text: {
          en: 'the number of ranks is not recorded, and {name:code} lasts on for {body:ms} after the last uploaded rank arrived: ranks may be missing',
          zh: '没有记录总卡数，且 {name:code} 在最后一张已上传的卡到达后仍持续 {body:ms}：可能缺少部分卡',
        },
        params: {
          name: first === undefined ? '' : job.ranks[first.ranks[0]!]!.collectives[job.matches[first.match]!.calls[0]!]!.name,
          body: first === undefined ? 0 : first.body / 1e6,
        },
      });
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
      const noTrace = job.ranks.map((_, i) => i).filter((i) => !job.ranks[i]!.capabilities.has('launches'));
      if (noTrace.length > 0) {
        add('trace', {
          text: {
            en: 'no trace_view.json for rank {ranks:ranks}: host, loader and launch checks are not possible there',
            zh: '卡 {ranks:ranks} 没有 trace_view.json：无法检查 Host、数据加载与下发',
          },
          params: { ranks: noTrace.map((i) => job.ranks[i]!.rank ?? -1) },
        });
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
