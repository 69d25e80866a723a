import { findingIdOf } from '../config/jobs.ts';
import { REGRESSION, type ShownFinding } from '../model/acknowledgement.ts';
import type { Finding, Report } from '../model/report.ts';
import { numberFindings } from './standing.ts';

/** Findings that a person may still point at; more are beyond any summary. */
const MAX_SHOWN = 200;

/** The id that stands for the step being slower in a job of the repository. */
export function regressionOf(job: string | null): string {
  return findingIdOf(REGRESSION, job);
}

function stateOf({ acknowledged, symptomOf, severity }: Finding): ShownFinding['state'] {
  if (acknowledged !== undefined) return acknowledged.by === null ? 'muted' : 'acknowledged';
  if (symptomOf !== null) return 'part';
  return severity === 'info' ? 'info' : 'open';
}

/** What a report shows, with the numbers it shows it under. */
export function shownFindings(report: Report, job: string | null): ShownFinding[] {
  const shown = numberFindings(report.findings).map(({ number, finding }): ShownFinding => {
    const { id, rule, title, saving } = finding;
    const edit = finding.recommendations.flatMap(({ edits }) => edits).find(({ kind }) => kind === 'suggestion');
    return {
      id,
      rule,
      number,
      title: title.slice(0, 300),
      saving: saving === null ? null : { likely: saving.perStepMs.likely, ceiling: saving.perStepMs.ceiling },
      state: stateOf(finding),
      change: edit === undefined ? null : { path: edit.file, startLine: edit.startLine, endLine: edit.endLine },
    };
  });
  const { comparison } = report;
  if (comparison?.verdict === 'regression' && comparison.deltaMs !== null) {
    const { deltaMs, acknowledged } = comparison;
    shown.push({
      id: regressionOf(job),
      rule: REGRESSION,
      number: null,
      title: comparison.text.slice(0, 300),
      saving: { likely: deltaMs, ceiling: deltaMs },
      state: acknowledged === undefined ? 'open' : acknowledged.by === null ? 'muted' : 'acknowledged',
      change: null,
    });
  }
  return shown.slice(0, MAX_SHOWN);
}
