import { median } from '../base/statistics.ts';
import type { ProfileMetrics } from '../model/history.ts';
import type { Report } from '../model/report.ts';

const CAUSES = 5;

/** The figures of a report that are followed over time: medians over all ranks and the steps that were used. */
export function profileMetrics(report: Report): ProfileMetrics {
  const { job, breakdown, findings } = report;
  const used = new Set(job.steps);
  const rows = breakdown.filter(({ step }) => used.size === 0 || step === null || used.has(step));
  const middle = (value: (row: (typeof rows)[number]) => number | null): number | null => {
    const known = rows.map(value).filter((v): v is number => v !== null && Number.isFinite(v) && v >= 0);
    return known.length === 0 ? null : median(known);
  };
  const share = middle((row) => (row.freeMs === null || row.stepMs === null || row.stepMs <= 0 ? null : row.freeMs / row.stepMs));
  const top = findings
    .filter(({ symptomOf, category }) => symptomOf === null && category !== 'comparison')
    .flatMap(({ rule, saving }) => (saving?.perStepMs.likely == null ? [] : [{ rule, savingMs: saving.perStepMs.likely }]))
    .filter(({ savingMs }) => savingMs > 0)
    .sort((a, b) => b.savingMs - a.savingMs || (a.rule < b.rule ? -1 : 1));
  return {
    stepTimeMs: job.stepTimeMs,
    freeShare: share === null ? null : Math.min(1, share),
    exposedMs: middle((row) => row.exposedCommunicationMs),
    top: top.slice(0, CAUSES),
  };
}
