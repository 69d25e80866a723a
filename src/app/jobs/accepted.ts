import type { JobSettings } from '../../config/jobs.ts';
import type { Report } from '../../model/report.ts';
import { regressionOf } from '../../render/shown.ts';
import { acknowledge } from '../../report/acknowledge.ts';
import { evaluateGate } from '../../report/gate.ts';
import type { Dependencies } from './dependencies.ts';

/** The UTC day of a moment, as acknowledgements and mutes write it. */
export function dateOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

/**
 * A report as it is shown on a pull request: with what people have acknowledged there and what the settings of the base branch mute. Reports
 * are kept without it, so that a word of a maintainer needs no second analysis.
 */
export async function asAccepted(
  deps: Pick<Dependencies, 'store' | 'now'>,
  repoId: number,
  pr: number,
  report: Report,
  { name, config }: Pick<JobSettings, 'name' | 'config'>,
): Promise<Report> {
  const acknowledgements = await deps.store.acknowledgements.of(repoId, pr);
  const known = acknowledge(report, { acknowledgements, mutes: config.mute, today: dateOf(deps.now()), regression: regressionOf(name) });
  return { ...known, gate: evaluateGate(known, config.gate) };
}
