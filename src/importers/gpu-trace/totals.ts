import { type GpuFacts, type GpuKernelTotal, type GpuOpTotal, type GpuRangeTotal, MAX_GPU_NAMES } from '../../model/gpu-facts.ts';
import { type Attribution, outermostByThread } from './attribute.ts';
import { classOfOperator, type Named } from './names.ts';
import { type HostRows, KERNEL, type TraceEvents } from './read-events.ts';

function longest<T extends { readonly ns: number; readonly name: string }>(rows: Iterable<T>): T[] {
  return [...rows].sort((a, b) => b.ns - a.ns || (a.name < b.name ? -1 : 1)).slice(0, MAX_GPU_NAMES);
}

function entryOf<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}

type Sum<T> = { -readonly [K in keyof T]: T[K] };

/** Sums over the activities that are `inside`, and over the host calls whose start is. */
export function totalsOf(
  events: TraceEvents,
  by: Attribution,
  named: (row: number) => Named,
  inside: Uint8Array,
  isInside: (at: number) => boolean,
): Pick<GpuFacts, 'kernels' | 'ops' | 'ranges' | 'attributed'> {
  const { device, operators, names } = events;
  const kernels = new Map<string, Sum<GpuKernelTotal>>();
  const ops = new Map<number, Sum<GpuOpTotal>>();
  const opOf = (id: number): Sum<GpuOpTotal> =>
    entryOf(ops, id, () => {
      const name = names.get(id).slice(0, 200);
      return { name, class: classOfOperator(name), calls: 0, kernels: 0, ns: 0 };
    });
  let all = 0;
  let known = 0;
  for (let row = 0; row < inside.length; row++) {
    if (inside[row] === 0) continue;
    const { name, class: kind } = named(row);
    const duration = device.duration.at(row);
    if (device.kind.at(row) === KERNEL) {
      const sum = entryOf(kernels, `${kind}/${name}`, () => ({ name, class: kind, count: 0, ns: 0 }));
      sum.count++;
      sum.ns += duration;
      all++;
      if (by.operator[row] !== -1) known++;
    }
    const operator = by.operator[row]!;
    if (operator === -1) continue;
    const sum = opOf(operators.name.at(operator));
    if (device.kind.at(row) === KERNEL) sum.kernels++;
    sum.ns += duration;
  }
  for (const list of outermostByThread(operators).values()) {
    for (const row of list) if (isInside(operators.start.at(row))) opOf(operators.name.at(row)).calls++;
  }
  return {
    kernels: longest(kernels.values()),
    ops: longest(ops.values()),
    ranges: [
      ...rangesOf(events, by, events.modules, 'module', inside, isInside),
      ...rangesOf(events, by, events.annotations, 'annotation', inside, isInside),
    ],
    attributed: all === 0 ? null : known / all,
  };
}

function rangesOf(
  events: TraceEvents,
  by: Attribution,
  rows: HostRows,
  kind: GpuRangeTotal['kind'],
  inside: Uint8Array,
  isInside: (at: number) => boolean,
): GpuRangeTotal[] {
  const { device, names } = events;
  const sums = new Map<number, Sum<GpuRangeTotal>>();
  const of = (id: number): Sum<GpuRangeTotal> =>
    entryOf(sums, id, () => ({ name: names.get(id).slice(0, 200), kind, calls: 0, hostNs: 0, kernels: 0, ns: 0 }));
  for (let row = 0; row < rows.start.length; row++) {
    if (!isInside(rows.start.at(row))) continue;
    const sum = of(rows.name.at(row));
    sum.calls++;
    sum.hostNs += rows.duration.at(row);
  }
  by.ranges(rows, (activity, name) => {
    if (inside[activity] === 0) return;
    const sum = of(name);
    if (device.kind.at(activity) === KERNEL) sum.kernels++;
    sum.ns += device.duration.at(activity);
  });
  return longest(sums.values());
}
