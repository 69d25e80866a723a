import type { ContributorDetail } from '../model/comparison.ts';
import { COMPUTE, type Tape } from '../model/facts.ts';
import type { L10n } from '../model/lang.ts';
import { perStep, type Stand } from './stand.ts';

/** Rows shown of one part. */
export const MAX_DETAILS = 6;
/** Share of an operator's change that one shape, or one call of a step, must have to be named. */
const MOST = 0.8;
/** Calls of one operator per step that are told apart by their place. */
const MAX_CALLS = 10_000;
/** Of fewer calls each has much of any change. */
const ENOUGH_CALLS = 4;

/** Calls and time per step of one operator type, and of each of its input shapes. */
interface OperatorTotal {
  calls: number;
  ns: number;
  readonly shapes: Map<string, { calls: number; ns: number }>;
}

/**
 * Names of kernels may end in a counter where the profile has no operator types; types that the importer took from names have lost their
 * last digits. `bare`: one of the sides has such types, so both are told apart without.
 */
function stableName(type: string, bare: boolean): string {
  let end = type.length;
  while (end > 0 && /[\d_]/.test(type[end - 1]!)) end--;
  // One digit is a version: `MatMulV2`.
  return end === 0 || (!bare && type.length - end < 2) ? type : type.slice(0, end);
}

function hasTypesFromNames({ job, ranks }: Stand): boolean {
  return [...ranks.keys()].some((r) => job.ranks[r]!.layout?.typesFromNames === true);
}

/** Operators of the computing part, by type and input shapes, with how often they ran and how long, per step. */
export function operatorDetails(head: Stand, base: Stand, smallestMs: number): ContributorDetail[] {
  const bare = hasTypesFromNames(head) || hasTypesFromNames(base);
  const [now, before] = [operatorTotals(head, bare), operatorTotals(base, bare)];
  const none: OperatorTotal = { calls: 0, ns: 0, shapes: new Map() };
  const rows = [...new Set([...now.keys(), ...before.keys()])].map((type) => {
    const [h, b] = [now.get(type) ?? none, before.get(type) ?? none];
    return { type, h, b, delta: (h.ns - b.ns) / 1e6 };
  });
  return rows
    .filter((row) => Math.abs(row.delta) >= smallestMs)
    .sort((x, y) => Math.abs(y.delta) - Math.abs(x.delta) || (x.type < y.type ? -1 : 1))
    .slice(0, MAX_DETAILS)
    .map(({ type, h, b, delta }): ContributorDetail => {
      const shape = mainShape(h, b);
      const place = shape === null || h.calls === 0 || b.calls === 0 ? null : mainPlace(head, base, { type, shape, bare });
      const params = { type, shape: shape ?? '', call: (place?.call ?? 0) + 1, of: place?.of ?? 0 };
      return {
        by: 'operator',
        what: { text: textOf(shape, place !== null), params },
        base: b.ns / 1e6,
        head: h.ns / 1e6,
        delta,
        calls: { base: perStep(b.calls), head: perStep(h.calls) },
      };
    });
}

function textOf(shape: string | null, placed: boolean): L10n {
  if (shape === null || shape === '') return placed ? AT_CALL : ALONE;
  return placed ? SHAPED_AT_CALL : WITH_SHAPE;
}

function operatorTotals({ job, ranks }: Stand, bare: boolean): Map<string, OperatorTotal> {
  const out = new Map<string, OperatorTotal>();
  for (const [rank, weights] of ranks) {
    const { tape } = job.ranks[rank]!;
    if (tape === null) continue;
    const totals = tape.types.map((type) => {
      const name = stableName(type, bare);
      let sum = out.get(name);
      if (sum === undefined) {
        sum = { calls: 0, ns: 0, shapes: new Map() };
        out.set(name, sum);
      }
      return sum;
    });
    for (let i = 0; i < tape.start.length; i++) {
      const weight = tape.kind[i] === COMPUTE ? (weights.get(tape.step[i]!) ?? 0) : 0;
      if (weight === 0) continue;
      const sum = totals[tape.type[i]!]!;
      const shape = shapeOf(tape, i);
      let own = sum.shapes.get(shape);
      if (own === undefined) {
        own = { calls: 0, ns: 0 };
        sum.shapes.set(shape, own);
      }
      for (const total of [sum, own]) {
        total.calls += weight;
        total.ns += weight * tape.duration[i]!;
      }
    }
  }
  return out;
}

function shapeOf(tape: Tape, node: number): string {
  return tape.shapes[tape.shape[node]!] ?? '';
}

/** The input shapes that carry most of the change; null when none does. */
function mainShape(head: OperatorTotal, base: OperatorTotal): string | null {
  const whole = head.ns - base.ns;
  // Shapes of one side only say nothing of what changed.
  if (head.shapes.has('') || base.shapes.has(''))
    return head.shapes.has('') && base.shapes.has('') && head.shapes.size + base.shapes.size === 2 ? '' : null;
  for (const shape of new Set([...head.shapes.keys(), ...base.shapes.keys()])) {
    if (((head.shapes.get(shape)?.ns ?? 0) - (base.shapes.get(shape)?.ns ?? 0)) / whole >= MOST) return shape;
  }
  return null;
}

interface Wanted {
  readonly type: string;
  readonly shape: string;
  readonly bare: boolean;
}

/** The one call among many equal ones that carries most of the change, counted from 0 in the order of the step. */
function mainPlace(head: Stand, base: Stand, wanted: Wanted): { call: number; of: number } | null {
  const [now, before] = [byPlace(head, wanted), byPlace(base, wanted)];
  if (now.length !== before.length || now.length < ENOUGH_CALLS) return null;
  const whole = now.reduce((sum, ns, i) => sum + ns - before[i]!, 0);
  const call = now.findIndex((ns, i) => (ns - before[i]!) / whole >= MOST);
  return call === -1 ? null : { call, of: now.length };
}

/** Time of the first, second, … call in a step, over the steps that stand for the job. */
function byPlace({ job, ranks }: Stand, { type, shape, bare }: Wanted): number[] {
  const out: number[] = [];
  for (const [rank, weights] of ranks) {
    const { tape } = job.ranks[rank]!;
    if (tape === null) continue;
    const seen = new Map<number, number>();
    const wanted = tape.types.map((t) => stableName(t, bare) === type);
    for (let i = 0; i < tape.start.length; i++) {
      const step = tape.step[i]!;
      const weight = weights.get(step);
      if (weight === undefined || tape.kind[i] !== COMPUTE) continue;
      if (!wanted[tape.type[i]!] || shapeOf(tape, i) !== shape) continue;
      const place = seen.get(step) ?? 0;
      seen.set(step, place + 1);
      if (place < MAX_CALLS) out[place] = (out[place] ?? 0) + weight * tape.duration[i]!;
    }
  }
  return out;
}

const ALONE: L10n = { en: '{type:code}', zh: '{type:code}' };
const WITH_SHAPE: L10n = { en: '{type:code} with inputs {shape:code}', zh: '{type:code}，输入 {shape:code}' };
const AT_CALL: L10n = { en: '{type:code}, call {call:int} of {of:int}', zh: '{type:code}，第 {call:int} 次（共 {of:int} 次）' };
const SHAPED_AT_CALL: L10n = {
  en: '{type:code} with inputs {shape:code}, call {call:int} of {of:int}',
  zh: '{type:code}，输入 {shape:code}，第 {call:int} 次（共 {of:int} 次）',
};
