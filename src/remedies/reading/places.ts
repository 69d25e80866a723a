import type { Advice } from '../../model/remedy.ts';
import type { Edit, Finding } from '../../model/report.ts';
import type { CallSite } from '../../source/find-in-tree.ts';
import type { LineEdit } from '../../source/line-edit.ts';
import { isTrainingFile } from './loaders.ts';

export type Place = Advice['locations'][number];

/** Files that the profile shows to take part in the run. */
export function provenFiles(finding: Pick<Finding, 'locations'>): string[] {
  return finding.locations.filter((location) => location.provenBy !== 'syntax').map((location) => location.file);
}

function placeOf({ module, call }: Pick<CallSite, 'module' | 'call'>): Place {
  const around = call.enclosing.find((enclosure) => enclosure.kind === 'function');
  return { file: module.path, line: call.span.startLine, symbol: around?.text ?? null };
}

/** More places than this help nobody. */
const MAX_PLACES = 8;

export function placesOf(sites: readonly Pick<CallSite, 'module' | 'call'>[]): Place[] {
  return sites.slice(0, MAX_PLACES).map(placeOf);
}

/** A branch that an NPU does not take. */
const FOR_GPUS = /(==|\bin\b)\s*\(?["'](cuda|gpu)\b/;

/** Sites of code that trains on an NPU: not in files of evaluation or conversion, not in branches for GPUs. */
export function ofTraining(sites: readonly CallSite[], finding: Pick<Finding, 'locations'>): CallSite[] {
  const proven = provenFiles(finding);
  return sites.filter(
    ({ module, call }) =>
      (proven.includes(module.path) || isTrainingFile(module.path)) &&
      !call.enclosing.some(({ kind, text }) => kind === 'if' && FOR_GPUS.test(text ?? '') && !/npu/i.test(text ?? '')),
  );
}

/** The sites in files that the profile points at; all of them when it points at none. */
export function supported(sites: readonly CallSite[], finding: Pick<Finding, 'locations'>): CallSite[] {
  const proven = provenFiles(finding);
  const inProven = sites.filter(({ module }) => proven.includes(module.path));
  return inProven.length > 0 ? inProven : [...sites];
}

/** Call sites with those first that the profile points at: the same lines, then the same file. */
export function bySupport(sites: readonly CallSite[], finding: Pick<Finding, 'locations'>): CallSite[] {
  const support = ({ module, call }: CallSite): number => {
    const inFile = finding.locations.filter((location) => location.file === module.path && location.provenBy !== 'syntax');
    if (inFile.some(({ line }) => call.span.startLine <= line && line <= call.span.endLine)) return 2;
    return inFile.length > 0 ? 1 : 0;
  };
  return [...sites].sort((a, b) => support(b) - support(a));
}

export function toEdit(edit: LineEdit, kind: Edit['kind']): Edit {
  return { ...edit, kind };
}
