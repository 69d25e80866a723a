import { pairingOf, torchOf } from '../../model/releases.ts';
import { defineRule, type RawEvidence, type RawFinding } from '../../model/rule.ts';

const KEYS = ['torch', 'torchNpu', 'cann'] as const;
type Key = (typeof KEYS)[number];
const NAME: Readonly<Record<Key, string>> = { torch: 'torch', torchNpu: 'torch_npu', cann: 'CANN' };
const FILE: Readonly<Record<Key, string>> = {
  torch: 'profiler_metadata.json',
  torchNpu: 'profiler_info.json',
  cann: 'profiler_info.json',
};

export default defineRule({
  id: 'version-mismatch',
  title: { en: 'Versions that were never released together', zh: '版本不配套' },
  category: 'capture',
  maturity: 'stable',
  needs: [],
  options: {},
  remedies: ['match-versions'],
  detect(job) {
    const common = {
      steps: [],
      groups: [],
      removal: null,
      boundMs: null,
      boundMethod: { text: { en: '', zh: '' } },
      information: false,
      symptomOf: null,
      frames: [],
      caveats: [],
    } as const;
    const findings: RawFinding[] = [];

    for (const key of KEYS) {
      const known = job.ranks.flatMap((r, i) => (r.settings[key] === null ? [] : [{ i, version: r.settings[key] }]));
      const groups = [...Map.groupBy(known, (k) => k.version)].sort(([, a], [, b]) => b.length - a.length || a[0]!.i - b[0]!.i);
      if (groups.length < 2) continue;
      // The few differ from the many; of equally many nobody can say which is right.
      const few = groups[0]![1].length > groups[1]![1].length ? groups.slice(1).flatMap(([, list]) => list) : [];
      findings.push({
        ...common,
        title: {
          text: { en: 'Ranks run different versions of {name:code}', zh: '各卡的 {name:code} 版本不同' },
          params: { name: NAME[key] },
        },
        ranks: few.map((k) => k.i),
        confidence: 'high',
        severity: 'high',
        evidence: groups.slice(0, 8).map(
          ([version, list]): RawEvidence => ({
            message: {
              text: { en: 'rank {ranks:ranks}: {version:code}', zh: '卡 {ranks:ranks}：{version:code}' },
              params: { ranks: list.map((k) => job.ranks[k.i]!.rank ?? -1), version },
            },
            file: FILE[key],
            rank: list[0]!.i,
          }),
        ),
        remedies: [{ id: 'match-versions', params: { kind: 'ranks', name: NAME[key] } }],
        hotspot: `ranks:${key}`,
      });
    }

    let checked = 0;
    const seen = new Set<string>();
    for (const [i, { settings }] of job.ranks.entries()) {
      const { torch, torchNpu, cann } = settings;
      if (torchNpu === null) continue;
      const madeFor = torchOf(torchNpu);
      const own = torch === null ? null : (/^\d{1,3}\.\d{1,3}\.\d{1,3}/.exec(torch.trim())?.[0] ?? null);
      if (madeFor !== null && own !== null) {
        checked++;
        if (madeFor !== own && !seen.has('torch')) {
          seen.add('torch');
          findings.push({
            ...common,
            title: {
              text: {
                en: 'torch_npu {npu:code} is made for torch {wanted:code}, the run has {torch:code}',
                zh: 'torch_npu {npu:code} 对应 torch {wanted:code}，本次运行为 {torch:code}',
              },
              params: { npu: torchNpu, wanted: madeFor, torch: torch! },
            },
            ranks: [],
            confidence: 'high',
            severity: 'high',
            evidence: [
              {
                message: {
                  text: {
                    en: 'a torch_npu package is built against one torch version and named after it',
                    zh: 'torch_npu 包针对单一 torch 版本编译，并以其命名',
                  },
                },
                file: 'profiler_metadata.json',
                rank: i,
              },
            ],
            remedies: [{ id: 'match-versions', params: { kind: 'torch', torchNpu, torch, cann } }],
            hotspot: 'torch',
          });
        }
      }
      const pairing = cann === null ? null : pairingOf(torchNpu, cann);
      if (pairing === null || pairing.outcome === 'unknown') continue;
      checked++;
      if (pairing.outcome === 'released' || seen.has('cann')) continue;
      seen.add('cann');
      findings.push({
        ...common,
        title: {
          text:
            pairing.cann === 'older'
              ? {
                  en: 'CANN {cann:code} is older than torch_npu {npu:code} expects',
                  zh: 'CANN {cann:code} 低于 torch_npu {npu:code} 的配套版本',
                }
              : {
                  en: 'CANN {cann:code} and torch_npu {npu:code} were never released together',
                  zh: 'CANN {cann:code} 与 torch_npu {npu:code} 从未配套发布',
                },
          params: { cann: cann!, npu: torchNpu },
        },
        ranks: [],
        confidence: 'medium',
        // An older CANN lacks operators that the package calls; a newer one mostly works and is only untested.
        severity: pairing.cann === 'older' ? 'medium' : 'info',
        evidence: [
          {
            message: {
              text: {
                en: 'torch_npu {npu:code} came out with CANN {expected:code}',
                zh: 'torch_npu {npu:code} 配套的 CANN 为 {expected:code}',
              },
              params: { npu: torchNpu, expected: [...pairing.expected] },
            },
            file: 'profiler_info.json',
            rank: i,
          },
        ],
        remedies: [{ id: 'match-versions', params: { kind: 'cann', torchNpu, cann, expected: pairing.expected.join(',') } }],
        hotspot: 'cann',
      });
    }
    if (findings.length > 0) return { outcome: 'findings', findings };
    if (checked > 0) {
      return {
        outcome: 'pass',
        reason: { text: { en: 'the recorded versions were released together', zh: '记录的版本是配套发布的' } },
      };
    }
    return {
      outcome: 'notApplicable',
      reason: {
        text: job.ranks.every((r) => KEYS.every((k) => r.settings[k] === null))
          ? { en: 'no version is recorded in the profile', zh: 'profile 中没有记录版本' }
          : {
              en: 'the recorded versions are not enough, or are none of a release',
              zh: '记录的版本不足，或不属于任何正式发布',
            },
      },
    };
  },
});
