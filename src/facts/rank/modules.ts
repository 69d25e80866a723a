import type { ModuleCalls, RankCapture } from '../../model/capture.ts';
import { COMPUTE, type ModuleTotal, type Tape } from '../../model/facts.ts';
import { type StepWindow, windowAt } from './windows.ts';

/** Classes kept, those with most device time first. */
const MAX_MODULES = 100;

/**
 * Device time by class of module: a kernel belongs to every module whose forward was open on the thread that asked for it. Backward
 * kernels are asked for by autograd, outside of any module.
 */
export function moduleTotals(capture: RankCapture, windows: readonly StepWindow[], tape: Tape | null): ModuleTotal[] {
  const { trace } = capture;
  if (trace === null || tape === null || trace.modules.start.length === 0) return [];
  const { modules, issued } = trace;
  const totals = modules.names.map((name) => ({ name, calls: 0, kernels: 0, ns: 0 }));
  for (let i = 0; i < modules.start.length; i++) {
    if (windowAt(windows, modules.start[i]!) !== -1) totals[modules.name[i]!]!.calls++;
  }
  for (const [tid, rows] of rowsByThread(modules)) {
    const asked: { at: number; node: number }[] = [];
    for (let i = 0; i < tape.start.length; i++) {
      const by = tape.kind[i] === COMPUTE ? issued.get(tape.start[i]!) : undefined;
      if (by?.tid === tid && windowAt(windows, by.at) !== -1) asked.push({ at: by.at, node: i });
    }
    asked.sort((a, b) => a.at - b.at);
    let next = 0;
    let open: number[] = [];
    for (const { at, node } of asked) {
      while (next < rows.length && modules.start[rows[next]!]! <= at) open.push(rows[next++]!);
      open = open.filter((row) => modules.start[row]! + modules.duration[row]! >= at);
      // A module inside one of its own class counts once.
      for (const name of new Set(open.map((row) => modules.name[row]!))) {
        totals[name]!.kernels++;
        totals[name]!.ns += tape.duration[node]!;
      }
    }
  }
  return totals
    .filter((t) => t.calls > 0)
    .sort((a, b) => b.ns - a.ns || b.calls - a.calls)
    .slice(0, MAX_MODULES);
}

function rowsByThread({ start, tid }: ModuleCalls): Map<number, number[]> {
  const rows = Map.groupBy(Array.from(start.keys()), (i) => tid[i]!);
  for (const own of rows.values()) own.sort((a, b) => start[a]! - start[b]! || a - b);
  return rows;
}
