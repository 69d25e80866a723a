import type { L10n, Lang } from '../model/lang.ts';
import type { Report } from '../model/report.ts';
import { type AnalyzeOptions, diagnose, save } from './analyze.ts';

const NOTHING: L10n = { en: 'no finding has a change for a line of this source', zh: '没有可落到该源码某一行的改动' };

export interface PatchOptions extends Omit<AnalyzeOptions, 'format'> {
  readonly source: string;
}

/** `npu-advise patch PATH... --source DIR`: every change as one unified diff for `git apply`; what to check goes before it as comments. */
export async function patch(paths: readonly string[], options: PatchOptions, terminal: Lang): Promise<void> {
  const report = await diagnose(paths, options, terminal);
  const text = patchText(report);
  if (report.patch === undefined) process.stderr.write(`npu-advise: ${NOTHING[report.lang]}\n`);
  if (options.out === undefined) process.stdout.write(text);
  else await save(options.out, text);
}

/** Lines before the first file of a patch are skipped by `git apply`. */
export function patchText(report: Report): string {
  if (report.patch === undefined) return '';
  const heads = report.findings.flatMap((finding) =>
    finding.recommendations
      .filter(({ edits }) => edits.length > 0)
      .flatMap(({ title, edits, preconditions }) => [
        `# ${[...new Set(edits.map(({ file, startLine }) => `${file}:${startLine}`))].join(', ')}: ${title}`,
        ...preconditions.map((condition) => `#   - ${condition}`),
      ]),
  );
  const lines = heads.map((line) => line.replaceAll(/[\u0000-\u001f\u007f\u0085\u2028\u2029]+/g, ' '));
  return `${[...new Set(lines)].join('\n')}\n\n${report.patch}`;
}
